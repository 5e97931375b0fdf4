// SPDX-License-Identifier: Apache-2.0

package uuid

import "github.com/google/uuid"

// Domain says what the number of a V2 identifies.
type Domain byte

// The domains of DCE security.
const (
	Person = Domain(uuid.Person) // of a user, as of POSIX's getuid
	Group  = Domain(uuid.Group)  // of a group, as of POSIX's getgid
	Org    = Domain(uuid.Org)    // of an organization
)

// V2 returns a UUID of a person, group or organization on this machine (DCE
// security). It is not suitable as a key, so there is no generator of them: the number
// replaces the low half of the time, and the domain a part of the counter. One number
// therefore has at most 64 different UUIDs in seven minutes. Take a [V7] for the key of a
// row; one column may hold V7s and V2s.
func V2(domain Domain, number uint32) ([16]byte, error) {
	u, err := uuid.NewDCESecurity(uuid.Domain(domain), number)
	return u, explain(err)
}
