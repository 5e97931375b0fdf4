package sqlxhook

// MaxPlans is the bound of the plan cache.
const MaxPlans = maxPlans

// PlansOf returns how many plans h keeps.
func PlansOf(h *Hook) int { return len(h.plans.m) }
