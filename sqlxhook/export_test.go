// SPDX-License-Identifier: Apache-2.0

package sqlxhook

// MaxPlans and MaxTexts are the bounds of the caches.
const (
	MaxPlans = maxPlans
	MaxTexts = maxTexts
)

// PlansOf returns how many plans h keeps.
func PlansOf(h *Hook) int { return len(h.plans.m) }

// TextsOf returns how many texts of batches h keeps, and their bytes.
func TextsOf(h *Hook) (n, bytes int) { return len(h.texts.m), h.texts.bytes }

// Bind makes the text and the arguments of one statement, and fills nothing.
func Bind(h *Hook, e Execer, query string, arg any) (string, []any, error) {
	var r rows
	if err := r.read(arg); err != nil {
		return "", nil, err
	}
	k := h.keyOfCall(e, query, false, &r)
	p, err := h.plan(&k, &r)
	if err != nil {
		return "", nil, err
	}
	if err := p.accepts(&r); err != nil {
		return "", nil, err
	}
	var a args
	err = p.collect(&a, &r)
	return p.text(r.n), a.all, err
}

// Plan returns the compiled plan of a query for the rows of arg, as a function
// that makes the text and the arguments of such rows.
func Plan(h *Hook, e Execer, query string, arg any) (func(arg any) (string, []any), error) {
	var r rows
	if err := r.read(arg); err != nil {
		return nil, err
	}
	k := h.keyOfCall(e, query, false, &r)
	p, err := h.plan(&k, &r)
	return func(arg any) (string, []any) {
		var r rows
		_ = r.read(arg)
		var a args
		_ = p.collect(&a, &r)
		return p.text(r.n), a.all
	}, err
}
