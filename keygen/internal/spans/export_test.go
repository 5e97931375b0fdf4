// SPDX-License-Identifier: Apache-2.0

package spans

import "context"

// Next returns a key, as the generators on a Buffer do.
func (b *Buffer) Next(ctx context.Context) (int64, error) { return Next(ctx, b, (*Buffer).More) }
