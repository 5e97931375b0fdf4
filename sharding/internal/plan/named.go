package plan

import "database/sql/driver"

// Arrange puts named arguments into the order of the statement's parameters, by which
// a plan finds them; the caller may give them in any order.
func (p *Plan) Arrange(args []driver.NamedValue) {
	for i := 0; i < len(args); {
		at := p.place(args[i].Name)
		if at < 0 || at >= len(args) || at == i || args[at].Name == args[i].Name {
			i++
			continue
		}
		args[i], args[at] = args[at], args[i]
	}
	for i := range args {
		args[i].Ordinal = i + 1
	}
}

// place returns which argument a parameter takes, -1 for what no parameter is called.
func (p *Plan) place(name string) int {
	for _, q := range p.statement.Params {
		if q.Name != "" && q.Name[1:] == name {
			return q.Index
		}
	}
	return -1
}
