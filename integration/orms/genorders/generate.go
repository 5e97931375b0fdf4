// SPDX-License-Identifier: Apache-2.0

//go:build ignore

// This program makes the package genorders.
package main

import (
	"gorm.io/gen"

	"github.com/shardid/shardid/integration/orms/genorders/model"
)

func main() {
	g := gen.NewGenerator(gen.Config{OutPath: "../genorders", Mode: gen.WithoutContext | gen.WithDefaultQuery | gen.WithQueryInterface})
	g.ApplyBasic(model.Order{}, model.Item{})
	g.Execute()
}
