// SPDX-License-Identifier: Apache-2.0

package uuid

import "github.com/google/uuid"

// These are the name spaces of the standard. Any other UUID can be a name space, too, for
// example a V4 that is a constant of the program.

// DNS is the space of fully qualified domain names.
func DNS() [16]byte { return uuid.NameSpaceDNS }

// URL is the space of URLs.
func URL() [16]byte { return uuid.NameSpaceURL }

// OID is the space of ISO object identifiers.
func OID() [16]byte { return uuid.NameSpaceOID }

// X500 is the space of X.500 distinguished names.
func X500() [16]byte { return uuid.NameSpaceX500 }

// V3 returns the UUID of a name in a name space, computed by MD5. The same name always has
// the same UUID, so that a unique key detects a row that is inserted twice. Whoever knows
// the name space can find out names by trying.
func V3(space [16]byte, name string) [16]byte { return uuid.NewMD5(space, []byte(name)) }

// V5 returns the UUID of a name in a name space like [V3], computed by SHA-1.
func V5(space [16]byte, name string) [16]byte { return uuid.NewSHA1(space, []byte(name)) }
