// SPDX-License-Identifier: Apache-2.0

// Package schema describes the two tables of the tests for ent.
package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/schema/edge"
	"entgo.io/ent/schema/field"
)

// Order is a row of the table orders, sharded by its user. Its id carries the slot.
type Order struct{ ent.Schema }

// Fields returns the columns.
func (Order) Fields() []ent.Field {
	return []ent.Field{
		field.Int64("id"),
		field.Int64("user_id"),
		field.String("note").MaxLen(50).Optional().Nillable(),
		field.Int64("amount"),
		field.Time("paid_at").Optional().Nillable(),
		field.Time("created_at"),
	}
}

// Edges returns the items of an order.
func (Order) Edges() []ent.Edge { return []ent.Edge{edge.To("items", Item.Type)} }

// Item is a row of the table items, on the shard of its order.
type Item struct{ ent.Schema }

// Fields returns the columns.
func (Item) Fields() []ent.Field {
	return []ent.Field{field.Int64("id"), field.Int64("order_id"), field.String("sku").MaxLen(20)}
}

// Edges returns the order of an item.
func (Item) Edges() []ent.Edge {
	return []ent.Edge{edge.From("order", Order.Type).Ref("items").Field("order_id").Unique().Required()}
}
