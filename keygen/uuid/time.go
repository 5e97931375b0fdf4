// SPDX-License-Identifier: Apache-2.0

package uuid

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/shardid/shardid/keygen"
)

// Time returns the time at which a V1, V6 or V7 was made, in UTC: to 100 ns, or to a
// millisecond for V7. For other UUIDs, which have no time, the error wraps
// [keygen.ErrLayout].
func Time(id [16]byte) (time.Time, error) {
	u := uuid.UUID(id)
	switch {
	case u.Variant() != uuid.RFC4122:
	case u.Version() == 1:
		return wall(u.Time()), nil
	case u.Version() == 6:
		high, low := binary.BigEndian.Uint64(u[:])>>16, binary.BigEndian.Uint16(u[6:])&0xfff
		return wall(uuid.Time(high<<12 | uint64(low))), nil
	case u.Version() == 7:
		return time.UnixMilli(int64(binary.BigEndian.Uint64(u[:]) >> 16)).UTC(), nil
	}
	return time.Time{}, fmt.Errorf("%w: %s holds no time; a UUID of version 1, 6 or 7 does", keygen.ErrLayout, u)
}

func wall(t uuid.Time) time.Time {
	sec, nsec := t.UnixTime()
	return time.Unix(sec, nsec).UTC()
}
