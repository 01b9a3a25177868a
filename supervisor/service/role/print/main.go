// Command print prints the role machine as docs/architecture.md has it.
package main

import (
	"fmt"

	"understudy/supervisor/service/role"
)

func main() { fmt.Print(role.Table()) }
