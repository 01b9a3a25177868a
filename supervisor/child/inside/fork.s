// So that the compiler takes the functions without a body in fork.go, which the runtime has.
