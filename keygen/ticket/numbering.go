// SPDX-License-Identifier: Apache-2.0

package ticket

import (
	"fmt"

	"github.com/shardid/shardid/keygen"
)

// maxIncrement is the largest auto_increment_increment of MySQL and MariaDB.
const maxIncrement = 65535

// Numbering is the sequence of ids of a server: Offset, Offset+Increment, and so on.
type Numbering struct {
	Offset    int64 // from 1 to Increment
	Increment int64 // from 1 to 65535; the present or planned number of servers
}

func (n Numbering) String() string {
	return fmt.Sprintf("%d, %d, %d, …", n.Offset, n.Offset+n.Increment, n.Offset+2*n.Increment)
}

func (n Numbering) validate() error {
	switch {
	case n.Increment < 1 || n.Increment > maxIncrement:
		return fmt.Errorf("the increment is %d; it is the number of servers, from 1 to %d", n.Increment, maxIncrement)
	case n.Offset < 1 || n.Offset > n.Increment:
		return fmt.Errorf("the offset is %d; with an increment of %d it is from 1 to %[2]d, another one on each server", n.Offset, n.Increment)
	}
	return nil
}

// holds returns true when all keys of a span belong to the numbering.
func (n Numbering) holds(s keygen.Span) bool {
	return (s.First-n.Offset)%n.Increment == 0 && (s.Count == 1 || s.Step%n.Increment == 0)
}

// overlaps returns true when some id belongs to both numberings.
func (n Numbering) overlaps(other Numbering) bool {
	return (n.Offset-other.Offset)%divisor(n.Increment, other.Increment) == 0
}

// divisor returns the greatest common divisor.
func divisor(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// NumberingError means that a server counts otherwise than configured, so that its ids would be
// those of another server. errors.Is also finds [keygen.ErrRegressed]: no id is issued, and a
// retry does not help.
type NumberingError struct {
	Want Numbering
	Got  Numbering // the server's own settings, or the first id and step it gave

	// Galera: the members of the server's cluster set themselves to count by their number,
	// and to something else whenever one comes or goes.
	Galera bool
}

func (e *NumberingError) Error() string {
	cure := "correct its settings, at once and in its configuration file, or correct the expected Numbering"
	if e.Galera {
		cure = "set wsrep_auto_increment_control=OFF on every member of its Galera cluster, and set the increment and the offset to the expected ones"
	}
	return fmt.Sprintf("the server counts by %d from %d, not by %d from %d as expected; %s",
		e.Got.Increment, e.Got.Offset, e.Want.Increment, e.Want.Offset, cure)
}

// Is makes errors.Is find keygen.ErrRegressed, which marks errors that a retry cannot cure.
func (e *NumberingError) Is(target error) bool { return target == keygen.ErrRegressed }
