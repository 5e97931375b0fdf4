package migrate

import (
	"context"
	"time"
)

// SwitchWithin is the pause of a Cutover that believes in a rehearsal.
func (j *Job) SwitchWithin(ctx context.Context, maxPause, needs time.Duration) (done Switch, err error) {
	err = j.leading(ctx, func(l *leader) error {
		done, err = l.switchOver(ctx, maxPause, needs)
		return err
	})
	return done, err
}
