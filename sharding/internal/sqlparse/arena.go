package sqlparse

// slab hands out values from slices that grow with the text, so that a tree
// costs few allocations.
type slab[T any] struct {
	free []T
	size int
}

const (
	minSlab = 2
	maxSlab = 256
)

// take returns n values, which nobody else has, as a slice that cannot grow into
// its neighbour.
func (s *slab[T]) take(n int) []T {
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

// arena holds what most trees have several of.
type arena struct {
	columns  slab[Column]
	literals slab[Literal]
	compares slab[Compare]
	idents   slab[Ident]
	exprs    slab[Expr]
}

// newArena returns an arena for an ordinary statement.
func newArena() arena {
	return arena{columns: slab[Column]{size: minSlab}, idents: slab[Ident]{size: 2 * minSlab}}
}

// pair returns two expressions as a list.
func (a *arena) pair(x, y Expr) []Expr {
	list := a.exprs.take(2)
	list[0], list[1] = x, y
	return list
}
