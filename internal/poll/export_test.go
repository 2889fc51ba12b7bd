package poll

// Kept is how many meetings the Poller still knows of.
func (p *Poller) Kept() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.plan.watches)
}
