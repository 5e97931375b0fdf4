// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"context"
	"time"
)

// SwitchWithin is the pause of a Cutover that believes in a rehearsal.
func (j *Job) SwitchWithin(ctx context.Context, maxPause, needs time.Duration) (done Switch, err error) {
	err = j.leading(ctx, func(l *leader) error {
		r, err := l.cut.SwitchOver(ctx, maxPause, needs)
		done = Switch(r)
		return err
	})
	return done, err
}
