package keygen_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/shardid/shardid/keygen"
)

func TestASetKeepsGeneratorsOfEachKindApart(t *testing.T) {
	s := keygen.Set{
		Named: map[string]keygen.Generator[int64]{"order": keygen.Counting(7, 1)},
		Text: map[string]keygen.Generator[string]{
			"order": keygen.Func[string](func(context.Context) (string, error) { return "text", nil }),
			"":      keygen.Func[string](func(context.Context) (string, error) { return "default", nil }),
		},
		Binary: map[string]keygen.Generator[[16]byte]{
			"order": keygen.Func[[16]byte](func(context.Context) ([16]byte, error) { return [16]byte{1}, nil }),
			"item":  keygen.Func[[16]byte](func(context.Context) ([16]byte, error) { return [16]byte{2}, nil }),
		},
	}
	if g, err := s.LookupText("order"); err != nil || first(t, g) != "text" {
		t.Error(err)
	}
	if g, err := s.LookupText(""); err != nil || first(t, g) != "default" {
		t.Error(err)
	}
	if g, err := s.LookupBinary("order"); err != nil || first(t, g) != [16]byte{1} {
		t.Error(err)
	}
	if g, err := s.Lookup("order"); err != nil || first(t, g) != 7 {
		t.Error(err)
	}
	if _, err := s.LookupText("item"); !errors.Is(err, keygen.ErrUnknownGenerator) || !strings.Contains(err.Error(), "string [, order]") {
		t.Error(err)
	}
	if _, err := s.LookupBinary("other"); !errors.Is(err, keygen.ErrUnknownGenerator) || !strings.Contains(err.Error(), `"other"; the set has [16]byte [item, order]`) {
		t.Error(err)
	}
}

func TestAGeneratorThatIsListedButNilIsSaidToBeNil(t *testing.T) {
	s := keygen.Set{
		Named:  map[string]keygen.Generator[int64]{"order": nil},
		Binary: map[string]keygen.Generator[[16]byte]{"": nil},
	}
	if g, err := s.Lookup("order"); g != nil || !errors.Is(err, keygen.ErrUnknownGenerator) || !strings.Contains(err.Error(), `"order" is nil`) {
		t.Error(err)
	}
	if g, err := s.LookupBinary(""); g != nil || !errors.Is(err, keygen.ErrUnknownGenerator) || !strings.Contains(err.Error(), `[16]byte "" is nil`) {
		t.Error(err)
	}
}

func first[K any](t *testing.T, g keygen.Generator[K]) K {
	t.Helper()
	k, err := g.Next(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return k
}
