package supervisor

// showWatchdog tells the observer of the device, once the guardians, which feed it, stand.
func (s *supervisor) showWatchdog() {
	w := s.cfg.Watchdog
	if w == nil {
		return
	}
	mode := "automatic" // as the config calls it
	if w.Required {
		mode = "required"
	}
	s.cfg.Observer.Watchdog(w.Device, mode, s.guard.WatchdogArmed)
}
