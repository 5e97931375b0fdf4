package rebalance

import "github.com/shardid/shardid/schema/internal/backend"

// Errors that this package wraps; test for them with errors.Is. They are those of
// package schema/migrate, too.
var (
	// ErrConfig: the configuration cannot work; nothing was touched.
	ErrConfig = backend.ErrConfig

	// ErrNotReady: a precondition of the step is not met. Nothing was changed; the
	// text says what to wait for or to mend.
	ErrNotReady = backend.ErrNotReady
)
