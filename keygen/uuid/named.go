// SPDX-License-Identifier: Apache-2.0

package uuid

import "github.com/google/uuid"

// The spaces of names that the standard knows. Any other UUID can be one too: a
// V4 that is written into the program, say.

// DNS is the space of fully qualified domain names.
func DNS() [16]byte { return uuid.NameSpaceDNS }

// URL is the space of URLs.
func URL() [16]byte { return uuid.NameSpaceURL }

// OID is the space of ISO object identifiers.
func OID() [16]byte { return uuid.NameSpaceOID }

// X500 is the space of X.500 distinguished names.
func X500() [16]byte { return uuid.NameSpaceX500 }

// V3 returns the UUID of a name in a space of names, of its MD5. The same name
// always has the same UUID, so inserting a row twice is noticed; whoever knows
// the space can tell the names by trying.
func V3(space [16]byte, name string) [16]byte { return uuid.NewMD5(space, []byte(name)) }

// V5 returns the UUID of a name in a space of names like [V3], of its SHA-1.
func V5(space [16]byte, name string) [16]byte { return uuid.NewSHA1(space, []byte(name)) }
