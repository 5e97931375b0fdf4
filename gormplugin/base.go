package gormplugin

import "github.com/shardid/shardid/keygen"

// Base gives a model a primary key of the default generator. Embed it in place
// of gorm.Model's ID:
//
//	type Order struct {
//		gormplugin.Base
//		Total int64
//	}
//
// AutoMigrate makes the column a BIGINT without AUTO_INCREMENT, and in JSON the
// id is a string, because JavaScript rounds large numbers.
type Base struct {
	ID keygen.ID `gorm:"primaryKey" json:"id" keygen:""`
}
