CREATE TABLE orders (
    id         BIGINT      NOT NULL PRIMARY KEY,
    user_id    BIGINT      NOT NULL,
    note       VARCHAR(50),
    amount     BIGINT      NOT NULL,
    paid_at    DATETIME(6),
    created_at DATETIME(6) NOT NULL
);

CREATE TABLE items (
    id       BIGINT      NOT NULL PRIMARY KEY,
    order_id BIGINT      NOT NULL,
    sku      VARCHAR(20) NOT NULL
);
