-- Software as a service: accounts (tenants) with agents, contacts, conversations,
-- issues and bookings, and what the operator of the service asks over all of them.
--
-- Tables and statements are written after those of Chatwoot (chatwoot/chatwoot), GitLab
-- (gitlab-org/gitlab), Cal.com (calcom/cal.com) and Plausible (plausible/analytics),
-- simplified. Chatwoot has account_id in nearly every table, and GitLab has been giving
-- each of its tables such a column; contact_inboxes, conversation_labels (taggings) and
-- attendees have none, as in the projects.
-- The form of this file is described in package corpus.

CREATE TABLE accounts (
  id BIGINT NOT NULL PRIMARY KEY, name VARCHAR(100) NOT NULL, domain VARCHAR(100), plan_id BIGINT NOT NULL, status INT NOT NULL DEFAULT 0,
  auto_resolve_after INT, created_at DATETIME(3) NOT NULL, updated_at DATETIME(3), deleted_at DATETIME(3)
);
-- sharded: accounts by id in group account

CREATE TABLE account_users (
  account_id BIGINT NOT NULL, user_id BIGINT NOT NULL, role INT NOT NULL DEFAULT 0, availability INT NOT NULL DEFAULT 0,
  active_at DATETIME(3), created_at DATETIME(3) NOT NULL, PRIMARY KEY (account_id, user_id)
);
-- sharded: account_users by account_id in group account

CREATE TABLE inboxes (id BIGINT NOT NULL PRIMARY KEY, account_id BIGINT NOT NULL, name VARCHAR(100) NOT NULL, channel_type VARCHAR(30) NOT NULL);
-- sharded: inboxes by account_id in group account, also id

CREATE TABLE contacts (
  id BIGINT NOT NULL PRIMARY KEY, account_id BIGINT NOT NULL, name VARCHAR(100), email VARCHAR(190), phone_number VARCHAR(30),
  blocked BOOLEAN NOT NULL DEFAULT 0, last_activity_at DATETIME(3), created_at DATETIME(3) NOT NULL, updated_at DATETIME(3),
  UNIQUE (account_id, email)
);
-- sharded: contacts by account_id in group account, also id

CREATE TABLE contact_inboxes (
  id BIGINT NOT NULL PRIMARY KEY, contact_id BIGINT NOT NULL, inbox_id BIGINT NOT NULL, source_id VARCHAR(100) NOT NULL, UNIQUE (inbox_id, source_id)
);
-- sharded: contact_inboxes by inbox_id in group account, also id, contact_id

CREATE TABLE conversations (
  id BIGINT NOT NULL PRIMARY KEY, account_id BIGINT NOT NULL, inbox_id BIGINT NOT NULL, contact_id BIGINT NOT NULL, assignee_id BIGINT,
  team_id BIGINT, display_id INT NOT NULL, status INT NOT NULL DEFAULT 0, priority INT, uuid VARCHAR(36) NOT NULL,
  last_activity_at DATETIME(3) NOT NULL, waiting_since DATETIME(3), first_reply_created_at DATETIME(3), snoozed_until DATETIME(3),
  created_at DATETIME(3) NOT NULL, updated_at DATETIME(3), UNIQUE (account_id, display_id)
);
-- sharded: conversations by account_id in group account, also id

CREATE TABLE messages (
  id BIGINT NOT NULL PRIMARY KEY, account_id BIGINT NOT NULL, conversation_id BIGINT NOT NULL, inbox_id BIGINT NOT NULL, sender_id BIGINT,
  message_type INT NOT NULL, content TEXT, private BOOLEAN NOT NULL DEFAULT 0, status INT NOT NULL DEFAULT 0, source_id VARCHAR(100),
  created_at DATETIME(3) NOT NULL, updated_at DATETIME(3)
);
-- sharded: messages by account_id in group account, also id, conversation_id; conversation_id refers to conversations

CREATE TABLE attachments (
  id BIGINT NOT NULL PRIMARY KEY, account_id BIGINT NOT NULL, message_id BIGINT NOT NULL, file_type INT NOT NULL, external_url VARCHAR(200), created_at DATETIME(3) NOT NULL
);
-- sharded: attachments by account_id in group account, also id, message_id; message_id refers to messages

CREATE TABLE labels (id BIGINT NOT NULL PRIMARY KEY, account_id BIGINT NOT NULL, title VARCHAR(60) NOT NULL, color VARCHAR(7), UNIQUE (account_id, title));
-- sharded: labels by account_id in group account, also id

CREATE TABLE conversation_labels (conversation_id BIGINT NOT NULL, label_id BIGINT NOT NULL, PRIMARY KEY (conversation_id, label_id));
-- sharded: conversation_labels by conversation_id in group account

CREATE TABLE notifications (
  id BIGINT NOT NULL PRIMARY KEY, account_id BIGINT NOT NULL, user_id BIGINT NOT NULL, notification_type INT NOT NULL,
  conversation_id BIGINT, read_at DATETIME(3), created_at DATETIME(3) NOT NULL
);
-- sharded: notifications by account_id in group account, also id

CREATE TABLE reporting_events (
  id BIGINT NOT NULL PRIMARY KEY, account_id BIGINT NOT NULL, name VARCHAR(40) NOT NULL, value DECIMAL(12,3) NOT NULL, inbox_id BIGINT,
  user_id BIGINT, conversation_id BIGINT, created_at DATETIME(3) NOT NULL
);
-- sharded: reporting_events by account_id in group account, also id

CREATE TABLE csat_responses (
  id BIGINT NOT NULL PRIMARY KEY, account_id BIGINT NOT NULL, conversation_id BIGINT NOT NULL, rating INT NOT NULL, feedback TEXT,
  assigned_agent_id BIGINT, created_at DATETIME(3) NOT NULL
);
-- sharded: csat_responses by account_id in group account, also id

CREATE TABLE projects (
  id BIGINT NOT NULL PRIMARY KEY, account_id BIGINT NOT NULL, name VARCHAR(100) NOT NULL, path VARCHAR(190) NOT NULL UNIQUE,
  visibility INT NOT NULL DEFAULT 0, star_count INT NOT NULL DEFAULT 0, archived BOOLEAN NOT NULL DEFAULT 0, last_activity_at DATETIME(3), created_at DATETIME(3) NOT NULL
);
-- sharded: projects by account_id in group account, also id

CREATE TABLE issues (
  id BIGINT NOT NULL PRIMARY KEY, account_id BIGINT NOT NULL, project_id BIGINT NOT NULL, iid INT NOT NULL, title VARCHAR(200) NOT NULL,
  state VARCHAR(10) NOT NULL, author_id BIGINT NOT NULL, assignee_id BIGINT, due_date DATE, closed_at DATETIME(3),
  created_at DATETIME(3) NOT NULL, updated_at DATETIME(3) NOT NULL, UNIQUE (project_id, iid)
);
-- sharded: issues by account_id in group account, also id, project_id; project_id refers to projects

CREATE TABLE bookings (
  id BIGINT NOT NULL PRIMARY KEY, account_id BIGINT NOT NULL, uid VARCHAR(36) NOT NULL UNIQUE, user_id BIGINT NOT NULL, title VARCHAR(200) NOT NULL,
  start_time DATETIME(3) NOT NULL, end_time DATETIME(3) NOT NULL, status VARCHAR(20) NOT NULL, created_at DATETIME(3) NOT NULL
);
-- sharded: bookings by account_id in group account, also id

CREATE TABLE attendees (id BIGINT NOT NULL PRIMARY KEY, booking_id BIGINT NOT NULL, email VARCHAR(190) NOT NULL, name VARCHAR(100), time_zone VARCHAR(60));
-- sharded: attendees by booking_id in group account, also id

CREATE TABLE usage_days (account_id BIGINT NOT NULL, day DATE NOT NULL, messages BIGINT NOT NULL, PRIMARY KEY (account_id, day));
-- sharded: usage_days by account_id in group account

CREATE TABLE plans (id BIGINT NOT NULL PRIMARY KEY, name VARCHAR(40) NOT NULL, price DECIMAL(10,2) NOT NULL, seats INT NOT NULL);
-- broadcast: plans

CREATE TABLE plan_features (plan_id BIGINT NOT NULL, feature VARCHAR(40) NOT NULL, PRIMARY KEY (plan_id, feature));
-- broadcast: plan_features

CREATE TABLE users (
  id BIGINT NOT NULL PRIMARY KEY, email VARCHAR(190) NOT NULL UNIQUE, password_hash VARCHAR(100) NOT NULL, name VARCHAR(100), confirmed_at DATETIME(3), created_at DATETIME(3) NOT NULL
);
-- home: users

CREATE TABLE sessions (id BIGINT NOT NULL PRIMARY KEY, user_id BIGINT NOT NULL, token VARCHAR(60) NOT NULL UNIQUE, expires_at DATETIME(3) NOT NULL);
-- home: sessions

CREATE TABLE api_keys (id BIGINT NOT NULL PRIMARY KEY, account_id BIGINT NOT NULL, token_hash VARCHAR(64) NOT NULL UNIQUE, revoked_at DATETIME(3), last_used_at DATETIME(3));
-- home: api_keys

CREATE TABLE subscriptions (id BIGINT NOT NULL PRIMARY KEY, account_id BIGINT NOT NULL UNIQUE, plan_id BIGINT NOT NULL, status VARCHAR(20) NOT NULL, next_bill_at DATE);
-- home: subscriptions

CREATE TABLE builds (
  id BIGINT NOT NULL PRIMARY KEY, project_id BIGINT NOT NULL, status VARCHAR(20) NOT NULL, runner_id BIGINT, queued_at DATETIME(3) NOT NULL, started_at DATETIME(3)
);
-- home: builds

CREATE TABLE tasks (
  id BIGINT NOT NULL PRIMARY KEY, type VARCHAR(40) NOT NULL, payload TEXT, scheduled_at DATETIME(3) NOT NULL, succeeded_at DATETIME(3), attempts INT NOT NULL DEFAULT 0, max_attempts INT NOT NULL DEFAULT 3
);
-- home: tasks

-- name: a user logs in
-- from: chatwoot, devise; gitlab, find by login
-- args: 'ann@example.com'
-- with: home
-- without: home
SELECT id, password_hash, confirmed_at FROM users WHERE email = ? LIMIT 1;

-- name: open a session
-- from: cal.com, packages/prisma/schema.prisma, Session
-- args: 1, 5, 'tok', '2024-06-01 00:00:00'
-- with: home
-- without: home
INSERT INTO sessions (id, user_id, token, expires_at) VALUES (?, ?, ?, ?);

-- name: the user of a session
-- from: plausible, user sessions
-- args: 'tok', '2024-05-01 10:00:00'
-- with: home
-- without: home
SELECT u.id, u.email, u.name FROM sessions s JOIN users u ON u.id = s.user_id WHERE s.token = ? AND s.expires_at > ?;

-- name: delete expired sessions
-- from: plausible, clean user sessions
-- args: '2024-05-01 10:00:00'
-- with: home
-- without: home
DELETE FROM sessions WHERE expires_at < ?;

-- name: the account of an API key
-- from: plausible, api keys
-- args: 'abc'
-- with: home
-- without: home
SELECT account_id FROM api_keys WHERE token_hash = ? AND revoked_at IS NULL;

-- name: the accounts of a user
-- from: chatwoot, app/models/user.rb, has_many accounts
-- args: 5
-- with: scatter
-- without: scatter
SELECT a.id, a.name, au.role FROM account_users au JOIN accounts a ON a.id = au.account_id WHERE au.user_id = ? AND a.deleted_at IS NULL ORDER BY a.name, a.id;

-- name: an account with its plan
-- from: gitlab, namespace and plan
-- args: 7
-- with: one
-- without: one
SELECT a.*, p.name AS plan, p.seats FROM accounts a JOIN plans p ON p.id = a.plan_id WHERE a.id = ?;

-- name: may the account use a feature
-- from: gitlab, licensed features
-- args: 7, 'sla'
-- with: one
-- without: one
SELECT COUNT(*) FROM accounts a WHERE a.id = ? AND EXISTS (SELECT 1 FROM plan_features f WHERE f.plan_id = a.plan_id AND f.feature = ?);

-- name: open an account
-- from: chatwoot, app/builders/account_builder.rb; GORM Create
-- args: 7, 'Acme', 1, '2024-05-01 10:00:00', '2024-05-01 10:00:00'
-- with: one
-- without: one
INSERT INTO `accounts` (`id`,`name`,`plan_id`,`created_at`,`updated_at`) VALUES (?,?,?,?,?);

-- name: rename an account
-- from: chatwoot, accounts controller; GORM Update
-- args: 'Acme Inc', '2024-05-01 10:00:00', 7
-- with: one
-- without: one
UPDATE `accounts` SET `name`=?,`updated_at`=? WHERE `accounts`.`deleted_at` IS NULL AND `id` = ?;

-- name: add an agent or change the role, MySQL
-- from: chatwoot, app/builders/agent_builder.rb
-- args: 7, 5, 1, '2024-05-01 10:00:00'
-- dialect: mysql
-- with: one
-- without: one
INSERT INTO account_users (account_id, user_id, role, created_at) VALUES (?, ?, ?, ?) ON DUPLICATE KEY UPDATE role = VALUES(role);

-- name: add an agent or change the role
-- from: plausible, team memberships
-- args: 7, 5, 1, '2024-05-01 10:00:00'
-- dialect: sqlite
-- with: one
-- without: one
INSERT INTO account_users (account_id, user_id, role, created_at) VALUES (?, ?, ?, ?) ON CONFLICT (account_id, user_id) DO UPDATE SET role = excluded.role;

-- name: the role of a user in an account
-- from: any of them, authorisation of each request
-- args: 7, 5
-- with: one
-- without: one
SELECT role FROM account_users WHERE account_id = ? AND user_id = ?;

-- name: an agent is online
-- from: chatwoot, account_users.active_at
-- args: '2024-05-01 10:00:00', 7, 5
-- with: one
-- without: one
UPDATE account_users SET active_at = ? WHERE account_id = ? AND user_id = ?;

-- name: the agents of an account with their names
-- from: chatwoot, agents index
-- args: 7
-- with: refused
-- without: refused
-- because: users lies in the home database alone; declare it as broadcast, or read the user_ids first and the users by them
SELECT u.id, u.name, u.email, au.role FROM account_users au JOIN users u ON u.id = au.user_id WHERE au.account_id = ? ORDER BY u.name;

-- name: users by their ids
-- from: chatwoot, includes(:assignee); GORM Preload
-- args: 5, 6, 8
-- with: home
-- without: home
SELECT * FROM `users` WHERE `users`.`id` IN (?,?,?);

-- name: leave an account
-- from: chatwoot, agents controller, destroy
-- args: 7, 5
-- with: one
-- without: one
DELETE FROM account_users WHERE account_id = ? AND user_id = ?;

-- name: the inboxes of an account
-- from: chatwoot, app/controllers/api/v1/accounts, inboxes index
-- args: 7
-- with: one
-- without: one
SELECT * FROM inboxes WHERE account_id = ? ORDER BY name;

-- name: the inbox of a webhook
-- from: chatwoot, webhooks name the inbox
-- args: 1031
-- with: one
-- without: scatter
SELECT * FROM inboxes WHERE id = ? LIMIT 1;

-- name: a contact by e-mail
-- from: chatwoot, app/builders/contact_inbox_with_contact_builder.rb
-- args: 7, 'bob@example.com'
-- with: one
-- without: one
SELECT * FROM contacts WHERE account_id = ? AND email = ? LIMIT 1;

-- name: contacts by name, a page
-- from: chatwoot, contacts index
-- args: 7, 15, 30
-- with: one
-- without: one
SELECT * FROM contacts WHERE account_id = ? AND blocked = 0 ORDER BY LOWER(name), id LIMIT ? OFFSET ?;

-- name: search contacts
-- from: chatwoot, contacts search
-- args: 7, '%bob%', '%bob%', '%bob%'
-- with: one
-- without: one
SELECT id, name, email FROM contacts WHERE account_id = ? AND (name LIKE ? OR email LIKE ? OR phone_number LIKE ?) ORDER BY last_activity_at DESC LIMIT 15;

-- name: add a contact
-- from: chatwoot, app/models/contact.rb; GORM Create
-- args: 2055, 7, 'Bob', 'bob@example.com', '2024-05-01 10:00:00', '2024-05-01 10:00:00'
-- with: one
-- without: one
INSERT INTO `contacts` (`id`,`account_id`,`name`,`email`,`created_at`,`updated_at`) VALUES (?,?,?,?,?,?);

-- name: import contacts, MySQL
-- from: chatwoot, data import job; GORM clause.OnConflict
-- args: 2055, 7, 'Bob', 'bob@example.com', '2024-05-01 10:00:00', 3079, 7, 'Cat', 'cat@example.com', '2024-05-01 10:00:00'
-- dialect: mysql
-- with: one
-- without: scatter
INSERT INTO `contacts` (`id`,`account_id`,`name`,`email`,`created_at`) VALUES (?,?,?,?,?),(?,?,?,?,?) ON DUPLICATE KEY UPDATE `name`=VALUES(`name`);

-- name: import contacts
-- from: chatwoot, data import job; GORM clause.OnConflict
-- args: 2055, 7, 'Bob', 'bob@example.com', '2024-05-01 10:00:00', 3079, 7, 'Cat', 'cat@example.com', '2024-05-01 10:00:00'
-- dialect: sqlite
-- with: one
-- without: one
INSERT INTO `contacts` (`id`,`account_id`,`name`,`email`,`created_at`) VALUES (?,?,?,?,?),(?,?,?,?,?) ON CONFLICT (`account_id`,`email`) DO UPDATE SET `name`=`excluded`.`name` RETURNING `id`;

-- name: the contact of an incoming message
-- from: chatwoot, app/builders/contact_inbox_builder.rb
-- args: 1031, 'wa-1'
-- with: one
-- without: refused
-- because: contact_inboxes and contacts are joined by contact_id, which does not say the shard; read the contact_id first
SELECT c.* FROM contact_inboxes ci JOIN contacts c ON c.id = ci.contact_id WHERE ci.inbox_id = ? AND ci.source_id = ?;

-- name: remember where a contact writes from
-- from: chatwoot, app/builders/contact_inbox_builder.rb
-- args: 4103, 2055, 1031, 'wa-1'
-- with: one
-- without: one
INSERT INTO contact_inboxes (id, contact_id, inbox_id, source_id) VALUES (?, ?, ?, ?);

-- name: move the conversations of a contact to another
-- from: chatwoot, contact merge
-- args: 3079, 7, 2055
-- with: one
-- without: one
UPDATE conversations SET contact_id = ? WHERE account_id = ? AND contact_id = ?;

-- name: delete a contact
-- from: chatwoot, contacts destroy; GORM Delete of a loaded struct
-- args: 2055, 7
-- with: one
-- without: one
DELETE FROM `contacts` WHERE `contacts`.`id` = ? AND `contacts`.`account_id` = ?;

-- name: conversations of an account, a page
-- from: chatwoot, app/finders/conversation_finder.rb
-- args: 7, 1031, 5127, 0, 25, 0
-- with: one
-- without: one
SELECT * FROM conversations WHERE account_id = ? AND inbox_id IN (?, ?) AND status = ? ORDER BY last_activity_at DESC LIMIT ? OFFSET ?;

-- name: how many are mine, unassigned and all
-- from: chatwoot, app/finders/conversation_finder.rb
-- args: 5, 7, 0
-- with: one
-- without: one
SELECT SUM(CASE WHEN assignee_id = ? THEN 1 ELSE 0 END) AS mine, SUM(CASE WHEN assignee_id IS NULL THEN 1 ELSE 0 END) AS unassigned, COUNT(*) AS total
FROM conversations WHERE account_id = ? AND status = ?;

-- name: a conversation by its number in the account
-- from: chatwoot, conversations show
-- args: 7, 42
-- with: one
-- without: one
SELECT * FROM conversations WHERE account_id = ? AND display_id = ? LIMIT 1;

-- name: a conversation by its id
-- from: chatwoot, background jobs find by id; GORM First
-- args: 6151, 1
-- with: one
-- without: scatter
SELECT * FROM `conversations` WHERE `conversations`.`id` = ? ORDER BY `conversations`.`id` LIMIT ?;

-- name: a conversation of a survey link
-- from: chatwoot, csat survey by uuid
-- args: '6f1e'
-- with: scatter
-- without: scatter
SELECT id, account_id, status FROM conversations WHERE uuid = ? LIMIT 1;

-- name: start a conversation
-- from: chatwoot, app/builders/conversation_builder.rb
-- args: 6151, 7, 1031, 2055, 42, '6f1e', '2024-05-01 10:00:00', '2024-05-01 10:00:00', '2024-05-01 10:00:00'
-- with: one
-- without: one
INSERT INTO conversations (id, account_id, inbox_id, contact_id, display_id, uuid, last_activity_at, waiting_since, created_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: the next number of a conversation
-- from: chatwoot, a trigger there; by hand in Go
-- args: 7
-- dialect: mysql
-- with: one
-- without: one
SELECT COALESCE(MAX(display_id), 0) + 1 FROM conversations WHERE account_id = ? FOR UPDATE;

-- name: resolve a conversation
-- from: chatwoot, app/models/conversation.rb, toggle_status; GORM Updates of a loaded struct, with the key that gormplugin adds
-- args: 1, '2024-05-01 10:00:00', 6151, 7
-- with: one
-- without: one
UPDATE `conversations` SET `status`=?,`updated_at`=? WHERE `id` = ? AND `account_id` = ?;

-- name: nobody waits any more
-- from: chatwoot, app/models/conversation.rb, update_column(:waiting_since, nil)
-- args: 6151
-- with: one
-- without: scatter
UPDATE conversations SET waiting_since = NULL WHERE id = ?;

-- name: assign several conversations
-- from: chatwoot, bulk actions
-- args: 5, '2024-05-01 10:00:00', 7, 41, 42, 43
-- with: one
-- without: one
UPDATE conversations SET assignee_id = ?, updated_at = ? WHERE account_id = ? AND display_id IN (?, ?, ?);

-- name: resolve what has been quiet
-- from: chatwoot, app/models/conversation.rb, resolvable_all
-- args: '2024-05-01 10:00:00', 7, '2024-04-24 10:00:00'
-- with: one
-- without: one
UPDATE conversations SET status = 1, updated_at = ? WHERE account_id = ? AND status = 0 AND last_activity_at < ?;

-- name: accounts that resolve by themselves
-- from: chatwoot, auto resolution scheduler
-- with: scatter
-- without: scatter
SELECT id, auto_resolve_after FROM accounts WHERE auto_resolve_after IS NOT NULL AND auto_resolve_after > 0;

-- name: snoozed conversations to reopen
-- from: chatwoot, reopen snoozed conversations job
-- args: '2024-04-28 10:00:00', '2024-05-01 10:00:00'
-- with: scatter
-- without: scatter
SELECT id, account_id FROM conversations WHERE status = 3 AND snoozed_until BETWEEN ? AND ? ORDER BY id LIMIT 1000;

-- name: conversations whose messages say something
-- from: chatwoot, app/finders/conversation_finder.rb, filter_by_query
-- args: 7, '%refund%'
-- with: one
-- without: one
SELECT DISTINCT c.id, c.display_id, c.last_activity_at FROM conversations c JOIN messages m ON m.conversation_id = c.id
WHERE c.account_id = ? AND m.content LIKE ? AND m.message_type IN (0, 1) ORDER BY c.last_activity_at DESC LIMIT 25;

-- name: messages that say something
-- from: chatwoot, search service
-- args: 7, '%refund%', '2024-02-01 00:00:00'
-- with: one
-- without: one
SELECT m.id, m.content, c.display_id FROM messages m JOIN conversations c ON c.id = m.conversation_id AND c.account_id = m.account_id
WHERE m.account_id = ? AND m.content LIKE ? AND m.created_at >= ? ORDER BY m.created_at DESC LIMIT 15;

-- name: conversations with any of some labels
-- from: chatwoot, app/finders/conversation_finder.rb, filter_by_labels
-- args: 7, 7, 'vip', 'bug'
-- with: one
-- without: refused
-- because: conversation_labels are sharded by conversation_id alone; give them an account_id
SELECT * FROM conversations WHERE account_id = ? AND status = 0 AND id IN (
  SELECT cl.conversation_id FROM conversation_labels cl JOIN labels l ON l.id = cl.label_id WHERE l.account_id = ? AND l.title IN (?, ?)
) ORDER BY last_activity_at DESC LIMIT 25;

-- name: label a conversation
-- from: chatwoot, labelable concern; ids are integers, so nothing is cut
-- args: 6151, 7175
-- dialect: mysql
-- with: one
-- without: one
INSERT IGNORE INTO conversation_labels (conversation_id, label_id) VALUES (?, ?);

-- name: take the labels off a conversation
-- from: chatwoot, labelable concern
-- args: 6151
-- with: one
-- without: one
DELETE FROM conversation_labels WHERE conversation_id = ?;

-- name: messages of a conversation before one
-- from: chatwoot, app/finders/message_finder.rb
-- args: 6151, 8199
-- with: one
-- without: scatter
SELECT * FROM messages WHERE conversation_id = ? AND id < ? ORDER BY created_at DESC LIMIT 20;

-- name: write a message
-- from: chatwoot, app/builders/messages/message_builder.rb; GORM Create
-- args: 8199, 7, 6151, 1031, 5, 1, 'Hello', '2024-05-01 10:00:00', '2024-05-01 10:00:00'
-- with: one
-- without: one
INSERT INTO `messages` (`id`,`account_id`,`conversation_id`,`inbox_id`,`sender_id`,`message_type`,`content`,`created_at`,`updated_at`) VALUES (?,?,?,?,?,?,?,?,?);

-- name: a message by the channel's id of it
-- from: chatwoot, delivery status of WhatsApp
-- args: 1031, 'wamid-1'
-- with: scatter
-- without: scatter
SELECT id, account_id, status FROM messages WHERE inbox_id = ? AND source_id = ? LIMIT 1;

-- name: a message has been read
-- from: chatwoot, delivery status, update by id
-- args: 2, 8199
-- with: one
-- without: scatter
UPDATE messages SET status = ? WHERE id = ?;

-- name: the conversation has a new message
-- from: chatwoot, message after create; GORM Updates of a loaded struct
-- args: '2024-05-01 10:00:00', 6151, 7
-- with: one
-- without: one
UPDATE `conversations` SET `last_activity_at`=? WHERE `id` = ? AND `account_id` = ?;

-- name: unread messages of a conversation
-- from: chatwoot, app/models/conversation.rb, unread_incoming_messages
-- args: 7, 6151, '2024-05-01 09:00:00'
-- with: one
-- without: one
SELECT COUNT(*) FROM messages WHERE account_id = ? AND conversation_id = ? AND message_type = 0 AND created_at > ?;

-- name: the last message of each conversation
-- from: chatwoot, conversation list
-- args: 7
-- with: one
-- without: one
SELECT conversation_id, content, created_at FROM (
  SELECT conversation_id, content, created_at, ROW_NUMBER() OVER (PARTITION BY conversation_id ORDER BY created_at DESC, id DESC) AS n
  FROM messages WHERE account_id = ? AND private = 0
) last WHERE n = 1;

-- name: preload attachments
-- from: chatwoot, includes(:attachments); GORM Preload
-- args: 8199, 9223
-- with: one
-- without: scatter
SELECT * FROM `attachments` WHERE `attachments`.`message_id` IN (?,?);

-- name: the files of a conversation
-- from: chatwoot, conversation attachments
-- args: 7, 7, 6151
-- with: one
-- without: one
SELECT a.id, a.file_type, a.external_url FROM attachments a JOIN messages m ON m.id = a.message_id
WHERE a.account_id = ? AND m.account_id = ? AND m.conversation_id = ? ORDER BY a.created_at DESC;

-- name: notify several agents
-- from: chatwoot, app/builders/notification_builder.rb
-- args: 9223, 7, 5, 1, 6151, '2024-05-01 10:00:00', 10247, 7, 6, 1, 6151, '2024-05-01 10:00:00'
-- with: one
-- without: one
INSERT INTO notifications (id, account_id, user_id, notification_type, conversation_id, created_at) VALUES (?, ?, ?, ?, ?, ?), (?, ?, ?, ?, ?, ?);

-- name: unread notifications
-- from: chatwoot, notification finder
-- args: 7, 5
-- with: one
-- without: one
SELECT * FROM notifications WHERE account_id = ? AND user_id = ? AND read_at IS NULL ORDER BY created_at DESC LIMIT 15;

-- name: read all notifications
-- from: chatwoot, notifications read_all
-- args: '2024-05-01 10:00:00', 7, 5
-- with: one
-- without: one
UPDATE notifications SET read_at = ? WHERE account_id = ? AND user_id = ? AND read_at IS NULL;

-- name: delete old notifications
-- from: chatwoot, remove old notification job
-- args: '2024-04-01 00:00:00'
-- with: refused
-- without: refused
-- because: a write without the key goes to every shard; delete account by account, or allow it for this statement with sharding.AllShards
DELETE FROM notifications WHERE created_at < ?;

-- name: new conversations by day
-- from: chatwoot, app/builders/v2/report_builder.rb
-- args: 7, '2024-04-01 00:00:00', '2024-05-01 00:00:00'
-- with: one
-- without: one
SELECT DATE(created_at) AS day, COUNT(*) AS conversations FROM conversations WHERE account_id = ? AND created_at >= ? AND created_at < ?
GROUP BY DATE(created_at) ORDER BY day;

-- name: how fast agents answer
-- from: chatwoot, app/builders/v2/reports/agent_summary_builder.rb
-- args: 7, '2024-04-01 00:00:00', '2024-05-01 00:00:00'
-- with: one
-- without: one
SELECT user_id, COUNT(*) AS replies, AVG(value) AS average FROM reporting_events
WHERE account_id = ? AND name = 'first_response' AND created_at BETWEEN ? AND ? GROUP BY user_id HAVING COUNT(*) > 5 ORDER BY average;

-- name: events by inbox
-- from: chatwoot, app/builders/v2/reports, inbox summary
-- args: 7
-- with: one
-- without: one
SELECT i.name, COUNT(*) AS events FROM reporting_events e JOIN inboxes i ON i.id = e.inbox_id AND i.account_id = e.account_id
WHERE e.account_id = ? GROUP BY i.name ORDER BY events DESC, i.name;

-- name: how content customers are
-- from: chatwoot, csat metrics
-- args: 7, '2024-04-01 00:00:00'
-- with: one
-- without: one
SELECT rating, COUNT(*) AS answers FROM csat_responses WHERE account_id = ? AND created_at >= ? GROUP BY rating ORDER BY rating;

-- name: forget old events of an account, in batches
-- from: gitlab, loose deletion in batches
-- args: 7, '2023-05-01 00:00:00'
-- dialect: mysql
-- with: one
-- without: one
DELETE FROM reporting_events WHERE account_id = ? AND created_at < ? ORDER BY created_at LIMIT 1000;

-- name: give a team the conversations of an inbox
-- from: chatwoot, automation rules; a joined update
-- args: 3, 7, 7, 'Support'
-- dialect: mysql
-- with: one
-- without: one
UPDATE conversations c JOIN inboxes i ON i.id = c.inbox_id SET c.team_id = ? WHERE c.account_id = ? AND i.account_id = ? AND i.name = ?;

-- name: usage of one account by day
-- from: plausible, usage of a team
-- args: 7, '2024-04-01 00:00:00', '2024-04-02 00:00:00'
-- with: one
-- without: one
INSERT INTO usage_days (account_id, day, messages) SELECT account_id, DATE(created_at), COUNT(*) FROM messages
WHERE account_id = ? AND created_at >= ? AND created_at < ? GROUP BY account_id, DATE(created_at);

-- name: usage of all accounts by day
-- from: gitlab, a nightly job
-- args: '2024-04-01 00:00:00', '2024-04-02 00:00:00'
-- with: refused
-- without: refused
-- because: INSERT ... SELECT over all shards writes in several databases; run it account by account
INSERT INTO usage_days (account_id, day, messages) SELECT account_id, DATE(created_at), COUNT(*) FROM messages
WHERE created_at >= ? AND created_at < ? GROUP BY account_id, DATE(created_at);

-- name: a project by its path
-- from: gitlab, find_by_full_path
-- args: 'acme/web'
-- with: scatter
-- without: scatter
SELECT * FROM projects WHERE path = ? LIMIT 1;

-- name: the projects of an account
-- from: gitlab, group projects
-- args: 7, 20, 0
-- with: one
-- without: one
SELECT * FROM projects WHERE account_id = ? AND archived = 0 ORDER BY last_activity_at DESC, id DESC LIMIT ? OFFSET ?;

-- name: explore projects by stars
-- from: gitlab, explore projects
-- args: 20, 0
-- with: scatter
-- without: scatter
SELECT id, name, path, star_count FROM projects WHERE visibility = 20 AND archived = 0 ORDER BY star_count DESC, id DESC LIMIT ? OFFSET ?;

-- name: star a project
-- from: gitlab, users star projects
-- args: 2055
-- with: one
-- without: scatter
UPDATE projects SET star_count = star_count + 1 WHERE id = ?;

-- name: the open issues of a project, a page
-- from: gitlab, issues finder
-- args: 2055, 20, 20
-- with: one
-- without: scatter
SELECT * FROM issues WHERE project_id = ? AND state = 'opened' ORDER BY created_at DESC, id DESC LIMIT ? OFFSET ?;

-- name: an issue by its number
-- from: gitlab, projects/issues show
-- args: 2055, 12
-- with: one
-- without: scatter
SELECT * FROM issues WHERE project_id = ? AND iid = ? LIMIT 1;

-- name: issues of a project by state
-- from: gitlab, issuable counts
-- args: 2055
-- with: one
-- without: scatter
SELECT state, COUNT(*) FROM issues WHERE project_id = ? GROUP BY state;

-- name: the highest number of an issue
-- from: gitlab, internal ids
-- args: 2055
-- with: one
-- without: scatter
SELECT MAX(iid) FROM issues WHERE project_id = ?;

-- name: what is assigned to me anywhere
-- from: gitlab, dashboard issues
-- args: 5, 20
-- with: scatter
-- without: scatter
SELECT id, account_id, title, due_date, updated_at FROM issues WHERE assignee_id = ? AND state = 'opened' ORDER BY updated_at DESC, id DESC LIMIT ?;

-- name: issues with their project's name
-- from: gitlab, group issues
-- args: 7
-- with: one
-- without: one
SELECT i.iid, i.title, p.path FROM issues i JOIN projects p ON p.id = i.project_id AND p.account_id = i.account_id
WHERE i.account_id = ? AND i.state = 'opened' ORDER BY i.due_date, i.id LIMIT 50;

-- name: close an issue
-- from: gitlab, close service; GORM Updates of a loaded struct
-- args: 'closed', '2024-05-01 10:00:00', '2024-05-01 10:00:00', 11271, 7
-- with: one
-- without: one
UPDATE `issues` SET `state`=?,`closed_at`=?,`updated_at`=? WHERE `id` = ? AND `account_id` = ?;

-- name: who writes most issues
-- from: gitlab, contribution analytics
-- args: 7, '2024-01-01 00:00:00'
-- with: one
-- without: one
SELECT author_id, COUNT(*) AS opened, COUNT(DISTINCT project_id) AS projects FROM issues WHERE account_id = ? AND created_at >= ?
GROUP BY author_id ORDER BY opened DESC, author_id LIMIT 10;

-- name: is the host busy
-- from: cal.com, packages/prisma/schema.prisma, Booking; availability
-- args: 5, '2024-05-02 11:00:00', '2024-05-02 10:00:00'
-- with: scatter
-- without: scatter
SELECT id, start_time, end_time FROM bookings WHERE user_id = ? AND status = 'accepted' AND start_time < ? AND end_time > ? ORDER BY start_time;

-- name: book
-- from: cal.com, create booking
-- args: 12295, 7, 'bk-1', 5, 'Intro', '2024-05-02 10:00:00', '2024-05-02 10:30:00', 'accepted', '2024-05-01 10:00:00'
-- with: one
-- without: one
INSERT INTO bookings (id, account_id, uid, user_id, title, start_time, end_time, status, created_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: invite attendees
-- from: cal.com, create booking
-- args: 13319, 12295, 'bob@example.com', 'Bob', 'UTC', 14343, 12295, 'cat@example.com', 'Cat', 'UTC'
-- with: one
-- without: one
INSERT INTO attendees (id, booking_id, email, name, time_zone) VALUES (?, ?, ?, ?, ?), (?, ?, ?, ?, ?);

-- name: a booking of a link with its attendees
-- from: cal.com, booking page by uid
-- args: 'bk-1'
-- with: scatter
-- without: refused
-- because: bookings and attendees are joined by booking_id, which does not say the shard of a booking; give attendees an account_id
SELECT b.id, b.title, b.start_time, t.email, t.name FROM bookings b JOIN attendees t ON t.booking_id = b.id WHERE b.uid = ? ORDER BY t.id;

-- name: the attendees of a booking
-- from: cal.com, booking include attendees
-- args: 12295
-- with: one
-- without: one
SELECT * FROM attendees WHERE booking_id = ? ORDER BY id;

-- name: what a guest has booked
-- from: cal.com, bookings of an attendee's e-mail
-- args: '2024-05-01 10:00:00', 'bob@example.com'
-- with: scatter
-- without: refused
-- because: the subquery's booking_id does not say the shard of a booking; give attendees an account_id and equate it
SELECT b.id, b.title, b.start_time FROM bookings b WHERE b.start_time >= ? AND EXISTS (SELECT 1 FROM attendees t WHERE t.booking_id = b.id AND t.email = ?)
ORDER BY b.start_time LIMIT 10;

-- name: cancel a booking
-- from: cal.com, handleCancelBooking, by id
-- args: 12295
-- with: one
-- without: scatter
UPDATE bookings SET status = 'cancelled' WHERE id = ?;

-- name: the price list
-- from: chatwoot, billing
-- with: broadcast
-- without: broadcast
SELECT p.id, p.name, p.price, COUNT(f.feature) AS features FROM plans p LEFT JOIN plan_features f ON f.plan_id = p.id GROUP BY p.id, p.name, p.price ORDER BY p.price;

-- name: change a plan
-- from: plausible, plans
-- args: 29, 10, 2
-- with: broadcast
-- without: broadcast
UPDATE plans SET price = ?, seats = ? WHERE id = ?;

-- name: the subscription of an account
-- from: plausible, subscriptions
-- args: 7
-- with: home
-- without: home
SELECT s.status, s.next_bill_at, p.name FROM subscriptions s JOIN plans p ON p.id = s.plan_id WHERE s.account_id = ?;

-- name: renew a subscription
-- from: plausible, billing webhooks
-- args: 'active', '2024-06-01', 7
-- with: home
-- without: home
UPDATE subscriptions SET status = ?, next_bill_at = ? WHERE account_id = ?;

-- name: a runner takes a build
-- from: gitlab, register job service
-- args: 'pending'
-- dialect: mysql
-- with: home
-- without: home
SELECT id, project_id FROM builds WHERE status = ? AND runner_id IS NULL ORDER BY queued_at, id LIMIT 1 FOR UPDATE SKIP LOCKED;

-- name: tasks that are due
-- from: cal.com, packages/features/tasker/repository.ts
-- args: '2024-05-01 10:00:00'
-- with: home
-- without: home
SELECT id, type, payload FROM tasks WHERE succeeded_at IS NULL AND attempts < max_attempts AND scheduled_at < ? ORDER BY scheduled_at LIMIT 1000;

-- name: accounts for the operator, a page
-- from: chatwoot, super admin
-- args: '%acme%', 20, 0
-- with: scatter
-- without: scatter
SELECT id, name, domain, status, created_at FROM accounts WHERE name LIKE ? AND deleted_at IS NULL ORDER BY name, id LIMIT ? OFFSET ?;

-- name: accounts by plan
-- from: chatwoot, super admin dashboard
-- with: scatter
-- without: scatter
SELECT p.name, COUNT(*) AS accounts FROM accounts a JOIN plans p ON p.id = a.plan_id WHERE a.deleted_at IS NULL GROUP BY p.name ORDER BY accounts DESC, p.name;

-- name: the busiest accounts
-- from: chatwoot, super admin dashboard
-- args: '2024-04-01 00:00:00'
-- with: scatter
-- without: scatter
SELECT account_id, COUNT(*) AS messages, COUNT(DISTINCT conversation_id) AS conversations FROM messages WHERE created_at >= ?
GROUP BY account_id HAVING COUNT(*) > 100 ORDER BY messages DESC, account_id LIMIT 20;

-- name: accounts that never used it
-- from: plausible, check-in mails
-- args: '2024-04-01 00:00:00'
-- with: scatter
-- without: scatter
SELECT a.id, a.name FROM accounts a LEFT JOIN conversations c ON c.account_id = a.id WHERE a.created_at < ? AND c.id IS NULL ORDER BY a.id LIMIT 200;

-- name: messages and conversations in total
-- from: chatwoot, instance statistics
-- with: scatter
-- without: scatter
SELECT COUNT(*) FROM messages;

-- name: erase the messages of an account
-- from: chatwoot, delete object job
-- args: 7
-- with: one
-- without: one
DELETE FROM messages WHERE account_id = ?;
