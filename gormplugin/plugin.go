package gormplugin

import (
	"fmt"

	"gorm.io/gorm"

	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/sharding"
)

// Config says what the plugin does. Both parts are independent.
type Config struct {
	// Generators fill the fields that carry a keygen tag. A tag that names a
	// generator it lacks makes every create of that model an error.
	Generators keygen.Set

	// Router sends statements on sharded tables to their shards. Defaults to nil:
	// no statement is touched. With a Router the *gorm.DB must have been opened
	// on MySQL, MariaDB or SQLite, with a *sql.DB and without PrepareStmt.
	Router *sharding.Router
}

// Plugin is a gorm.Plugin. Give it to one *gorm.DB with Use. It is safe for
// concurrent use.
type Plugin struct {
	config Config
}

var _ gorm.Plugin = (*Plugin)(nil)

// New returns the plugin for db.Use.
func New(c Config) *Plugin { return &Plugin{config: c} }

// Name returns "shardid".
func (p *Plugin) Name() string { return "shardid" }

// Initialize registers the callbacks. It is called by Use and runs no SQL.
func (p *Plugin) Initialize(db *gorm.DB) error {
	var err error
	if p.config.Router != nil {
		err = install(db, p.config.Router)
	}
	if err == nil {
		err = (&fill{plans: plans{set: p.config.Generators}}).register(db)
	}
	if err != nil {
		return fmt.Errorf("gormplugin: %w", err)
	}
	return nil
}
