package supervisor

// showWatchdog tells the observer of the device, once the guardians stand, who feed it.
func (s *supervisor) showWatchdog() {
	w := s.cfg.Watchdog
	mode := "automatic" // as the config calls it
	if w != nil && w.Required {
		mode = "required"
	}
	holder, ok := s.guard.(interface{ WatchdogArmed() bool })
	if w != nil && ok {
		s.cfg.Observer.Watchdog(w.Device, mode, holder.WatchdogArmed)
	}
}
