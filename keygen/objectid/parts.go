// SPDX-License-Identifier: Apache-2.0

package objectid

import (
	"encoding/binary"
	"time"
)

// Parts is an id split into its fields.
type Parts struct {
	Time    time.Time // when it was made, to the second, UTC
	Process [5]byte   // random; in ids of older drivers 3 bytes of machine and 2 of process id
	Counter uint32    // 24 bits
}

// Split splits an id into its fields. Every 12 bytes are a valid id.
func Split(id [12]byte) Parts {
	return Parts{
		Time:    Time(id),
		Process: [5]byte(id[4:9]),
		Counter: binary.BigEndian.Uint32(id[8:]) & 0xffffff,
	}
}

// Time returns the time at which an id was made, to the second, in UTC: from 1970 to 2106.
func Time(id [12]byte) time.Time {
	return time.Unix(int64(binary.BigEndian.Uint32(id[:])), 0).UTC()
}
