// SPDX-License-Identifier: Apache-2.0

// Package model has the models of which gorm.io/gen makes the code of genorders. Nothing in them says
// that their tables are sharded.
package model

import (
	"context"
	"time"

	"gorm.io/gorm"
)

// Order is a row of orders.
type Order struct {
	ID        int64 `gorm:"primaryKey" keygen:""`
	UserID    int64
	Note      *string
	Amount    int64
	PaidAt    *time.Time
	CreatedAt time.Time
}

// Item is a row of items.
type Item struct {
	ID      int64 `gorm:"primaryKey;autoIncrement:false"`
	OrderID int64
	SKU     string
}

// NextID is the key of a context's function that makes ids of orders.
type NextID struct{}

// BeforeCreate gives a new order its id where gormplugin does not.
func (o *Order) BeforeCreate(db *gorm.DB) (err error) {
	next, ok := db.Statement.Context.Value(NextID{}).(func(ctx context.Context, user int64) (int64, error))
	if ok && o.ID == 0 {
		o.ID, err = next(db.Statement.Context, o.UserID)
	}
	return err
}
