// SPDX-License-Identifier: Apache-2.0

package sqlparse

// slab allocates values in slices that grow with the text, so that a tree needs few allocations. A
// nil slab allocates each slice separately.
type slab[T any] struct {
	free []T
	size int
}

const (
	minSlab = 8
	maxSlab = 256
)

// take returns n unused values, as a slice that cannot grow into the following values.
func (s *slab[T]) take(n int) []T {
	if s == nil {
		return make([]T, n)
	}
	if len(s.free) < n {
		s.size = min(max(2*s.size, minSlab), maxSlab)
		s.free = make([]T, max(s.size, n))
	}
	taken := s.free[:n:n]
	s.free = s.free[n:]
	return taken
}

func (s *slab[T]) put(v T) *T {
	p := &s.take(1)[0]
	*p = v
	return p
}

// arena has slabs for the nodes of which most trees have several.
type arena struct {
	columns    slab[Column]
	literals   slab[Literal]
	operations slab[Operation]
	params     slab[Param]
	idents     slab[Ident]
	exprs      slab[Expr]
	items      slab[Item]
	sources    slab[Source]
	orders     slab[Order]
	tables     slab[Table]
}

// ordinary is the memory of an ordinary statement, in one allocation.
type ordinary struct {
	statement  Statement
	params     [4]*Param
	names      [2]string
	own        [3]Param
	columns    [4]Column
	literals   [1]Literal
	operations [3]Operation
	idents     [8]Ident
	exprs      [6]Expr
	items      [1]Item
	sources    [1]Source
	orders     [1]Order
	tables     [1]Table
}

// begin gives the parser the memory of an ordinary statement.
func (p *parser) begin() {
	o := &ordinary{}
	p.out = &o.statement
	p.out.Text, p.out.Params, p.out.Names = p.text, o.params[:0], o.names[:0]
	p.params.free, p.columns.free, p.literals.free, p.operations.free = o.own[:], o.columns[:], o.literals[:], o.operations[:]
	p.idents.free, p.arena.exprs.free, p.arena.items.free = o.idents[:], o.exprs[:], o.items[:]
	p.arena.sources.free, p.orders.free, p.tables.free = o.sources[:], o.orders[:], o.tables[:]
}

// list reads a list that is separated by commas.
func list[T any](p *cursor, s *slab[T], read func() T) []T {
	first := read()
	all := s.take(1)
	all[0] = first
	for p.accept(",") {
		all = append(all, read())
	}
	return all
}

func parens[T any](p *cursor, read func() T) T {
	p.expect("(")
	x := read()
	p.expect(")")
	return x
}
