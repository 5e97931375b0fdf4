// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"github.com/shardid/shardid/examples/internal/shoptest"
)

func TestTheShopSellsOnEveryDatabase(t *testing.T) {
	shoptest.Run(t, open)
}
