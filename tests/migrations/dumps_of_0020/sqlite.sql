CREATE TABLE alembic_version (
	version_num VARCHAR(32) NOT NULL,
	CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);
CREATE TABLE tenant (
	id TEXT NOT NULL,
	created_at DOUBLE NOT NULL, name TEXT DEFAULT '' NOT NULL, disabled_at DOUBLE,
	CONSTRAINT pk_tenant PRIMARY KEY (id)
);
CREATE TABLE app_user (
	tenant_id TEXT NOT NULL,
	id TEXT NOT NULL,
	created_at DOUBLE NOT NULL, name TEXT DEFAULT '' NOT NULL, disabled_at DOUBLE,
	CONSTRAINT pk_app_user PRIMARY KEY (tenant_id, id),
	CONSTRAINT fk_app_user_tenant_id FOREIGN KEY(tenant_id) REFERENCES tenant (id)
);
CREATE TABLE api_key (
	id TEXT NOT NULL,
	tenant_id TEXT NOT NULL,
	user_id TEXT NOT NULL,
	name TEXT NOT NULL,
	role TEXT NOT NULL,
	collections JSON,
	prefix TEXT NOT NULL,
	secret_sha256 TEXT NOT NULL,
	created_at DOUBLE NOT NULL,
	expires_at DOUBLE,
	revoked_at DOUBLE, rotated_at DOUBLE, previous_prefix TEXT, previous_sha256 TEXT, previous_expires_at DOUBLE,
	CONSTRAINT pk_api_key PRIMARY KEY (id),
	CONSTRAINT ck_api_key_ck_api_key_role CHECK (role IN ('admin', 'member', 'reader')),
	CONSTRAINT fk_api_key_tenant_id FOREIGN KEY(tenant_id, user_id) REFERENCES app_user (tenant_id, id),
	CONSTRAINT uq_api_key_secret_sha256 UNIQUE (secret_sha256)
);
CREATE INDEX ix_api_key_tenant_id_created_at ON api_key (tenant_id, created_at);
CREATE TABLE collection (
	id TEXT NOT NULL,
	tenant_id TEXT NOT NULL,
	name TEXT NOT NULL,
	metadata JSON NOT NULL,
	created_at DOUBLE NOT NULL,
	CONSTRAINT pk_collection PRIMARY KEY (id),
	CONSTRAINT fk_collection_tenant_id FOREIGN KEY(tenant_id) REFERENCES tenant (id),
	CONSTRAINT uq_collection_tenant_id_name UNIQUE (tenant_id, name)
);
CREATE TABLE document (
	id TEXT NOT NULL,
	tenant_id TEXT NOT NULL,
	collection_id TEXT NOT NULL,
	external_id TEXT,
	content_key TEXT,
	version INTEGER NOT NULL,
	live_version INTEGER,
	status TEXT NOT NULL,
	done INTEGER NOT NULL,
	total INTEGER NOT NULL,
	job_id TEXT NOT NULL,
	created_at DOUBLE NOT NULL,
	updated_at DOUBLE NOT NULL,
	metadata JSON NOT NULL,
	CONSTRAINT pk_document PRIMARY KEY (id),
	CONSTRAINT ck_document_ck_document_status CHECK (status IN ('queued', 'extracting', 'chunking', 'embedding', 'indexed', 'failed', 'deleting')),
	CONSTRAINT ck_document_ck_document_live_version CHECK (live_version <= version),
	CONSTRAINT fk_document_collection_id FOREIGN KEY(collection_id) REFERENCES collection (id),
	CONSTRAINT fk_document_tenant_id FOREIGN KEY(tenant_id) REFERENCES tenant (id),
	CONSTRAINT uq_document_tenant_id_collection_id_content_key UNIQUE (tenant_id, collection_id, content_key),
	CONSTRAINT uq_document_tenant_id_collection_id_external_id UNIQUE (tenant_id, collection_id, external_id)
);
CREATE INDEX ix_document_collection_id ON document (collection_id);
CREATE INDEX ix_document_tenant_id_created_at_id ON document (tenant_id, created_at, id);
CREATE TABLE document_version (
	document_id TEXT NOT NULL,
	version INTEGER NOT NULL,
	filename TEXT NOT NULL,
	bytes BIGINT NOT NULL,
	sha256 TEXT NOT NULL,
	media_type TEXT,
	page_count INTEGER NOT NULL,
	first_key BIGINT,
	chunk_count INTEGER NOT NULL,
	token_count INTEGER NOT NULL,
	generation INTEGER,
	embedding_tokens BIGINT NOT NULL,
	created_at DOUBLE NOT NULL,
	indexed_at DOUBLE,
	title TEXT,
	text TEXT,
	pages JSON,
	blocks JSON,
	CONSTRAINT pk_document_version PRIMARY KEY (document_id, version),
	CONSTRAINT fk_document_version_document_id FOREIGN KEY(document_id) REFERENCES document (id),
	CONSTRAINT fk_document_version_generation FOREIGN KEY(generation) REFERENCES index_generation (id)
);
CREATE INDEX ix_document_version_sha256 ON document_version (sha256);
CREATE TABLE chunk (
	"key" INTEGER NOT NULL,
	document_id TEXT NOT NULL,
	version INTEGER NOT NULL,
	ordinal INTEGER NOT NULL,
	start_char INTEGER NOT NULL,
	end_char INTEGER NOT NULL,
	page_start INTEGER,
	page_end INTEGER,
	token_count INTEGER NOT NULL,
	heading_path JSON NOT NULL,
	heading TEXT NOT NULL,
	text TEXT NOT NULL, table_header TEXT DEFAULT '' NOT NULL,
	CONSTRAINT pk_chunk PRIMARY KEY ("key"),
	CONSTRAINT fk_chunk_document_id FOREIGN KEY(document_id) REFERENCES document (id),
	CONSTRAINT uq_chunk_document_id_version_ordinal UNIQUE (document_id, version, ordinal)
);
CREATE TABLE chunk_vector (
	"key" INTEGER NOT NULL,
	generation INTEGER NOT NULL,
	vector BLOB NOT NULL,
	CONSTRAINT pk_chunk_vector PRIMARY KEY ("key", generation),
	CONSTRAINT fk_chunk_vector_generation FOREIGN KEY(generation) REFERENCES index_generation (id),
	CONSTRAINT fk_chunk_vector_key FOREIGN KEY("key") REFERENCES chunk ("key")
);
CREATE TABLE key_counter (
	name TEXT NOT NULL,
	next_key BIGINT NOT NULL,
	CONSTRAINT pk_key_counter PRIMARY KEY (name)
);
CREATE TABLE job (
	id TEXT NOT NULL,
	tenant_id TEXT NOT NULL,
	document_id TEXT NOT NULL,
	version INTEGER NOT NULL,
	status TEXT NOT NULL,
	attempts INTEGER NOT NULL,
	"replace" BOOLEAN NOT NULL,
	user_id TEXT NOT NULL,
	key_id TEXT NOT NULL,
	boot_id TEXT,
	error_code TEXT,
	error_detail TEXT,
	created_at DOUBLE NOT NULL,
	started_at DOUBLE,
	finished_at DOUBLE, next_attempt_at DOUBLE DEFAULT 0 NOT NULL, crashes INTEGER DEFAULT 0 NOT NULL, reindex_id TEXT,
	CONSTRAINT pk_job PRIMARY KEY (id),
	CONSTRAINT ck_job_ck_job_status CHECK (status IN ('queued', 'running', 'done', 'failed', 'cancelled'))
);
CREATE INDEX ix_job_document_id ON job (document_id);
CREATE VIRTUAL TABLE chunk_fts USING fts5(text, heading, content='chunk', content_rowid='key', tokenize='porter unicode61 remove_diacritics 2');
CREATE TRIGGER chunk_fts_insert AFTER INSERT ON chunk BEGIN INSERT INTO chunk_fts (rowid, text, heading) VALUES (new.key, new.text, new.heading); END;
CREATE TRIGGER chunk_fts_delete AFTER DELETE ON chunk BEGIN INSERT INTO chunk_fts (chunk_fts, rowid, text, heading) VALUES ('delete', old.key, old.text, old.heading); END;
CREATE TRIGGER chunk_fts_update AFTER UPDATE ON chunk BEGIN INSERT INTO chunk_fts (chunk_fts, rowid, text, heading) VALUES ('delete', old.key, old.text, old.heading); INSERT INTO chunk_fts (rowid, text, heading) VALUES (new.key, new.text, new.heading); END;
CREATE VIRTUAL TABLE chunk_trigram USING fts5(text, heading, content='chunk', content_rowid='key', tokenize='trigram');
CREATE TRIGGER chunk_trigram_insert AFTER INSERT ON chunk BEGIN INSERT INTO chunk_trigram (rowid, text, heading) VALUES (new.key, new.text, new.heading); END;
CREATE TRIGGER chunk_trigram_delete AFTER DELETE ON chunk BEGIN INSERT INTO chunk_trigram (chunk_trigram, rowid, text, heading) VALUES ('delete', old.key, old.text, old.heading); END;
CREATE TRIGGER chunk_trigram_update AFTER UPDATE ON chunk BEGIN INSERT INTO chunk_trigram (chunk_trigram, rowid, text, heading) VALUES ('delete', old.key, old.text, old.heading); INSERT INTO chunk_trigram (rowid, text, heading) VALUES (new.key, new.text, new.heading); END;
CREATE TABLE api_request (
	request_id TEXT NOT NULL,
	idem_key TEXT DEFAULT '' NOT NULL,
	idem_fp TEXT DEFAULT '' NOT NULL,
	tenant_id TEXT NOT NULL,
	project_id TEXT DEFAULT '' NOT NULL,
	user_id TEXT DEFAULT '' NOT NULL,
	api_key_id TEXT DEFAULT '' NOT NULL,
	endpoint TEXT NOT NULL,
	accepted_at BIGINT NOT NULL,
	boot_id TEXT NOT NULL,
	CONSTRAINT pk_api_request PRIMARY KEY (request_id)
);
CREATE UNIQUE INDEX ux_api_request_idem ON api_request (api_key_id, endpoint, idem_key) WHERE idem_key <> '';
CREATE TABLE usage_event (
	event_id TEXT NOT NULL,
	request_id TEXT NOT NULL,
	operation TEXT NOT NULL,
	tenant_id TEXT NOT NULL,
	project_id TEXT DEFAULT '' NOT NULL,
	user_id TEXT DEFAULT '' NOT NULL,
	api_key_id TEXT DEFAULT '' NOT NULL,
	boot_id TEXT NOT NULL,
	model_id TEXT NOT NULL,
	tokenizer_rev TEXT NOT NULL,
	status TEXT NOT NULL,
	count_quality TEXT DEFAULT 'none' NOT NULL,
	tok_system BIGINT DEFAULT '0' NOT NULL,
	tok_history BIGINT DEFAULT '0' NOT NULL,
	tok_context BIGINT DEFAULT '0' NOT NULL,
	tok_question BIGINT DEFAULT '0' NOT NULL,
	tok_template BIGINT DEFAULT '0' NOT NULL,
	input_tokens BIGINT DEFAULT '0' NOT NULL,
	input_cached_tokens BIGINT DEFAULT '0' NOT NULL,
	output_tokens BIGINT DEFAULT '0' NOT NULL,
	output_reasoning_tokens BIGINT DEFAULT '0' NOT NULL,
	output_delivered_tokens BIGINT DEFAULT '0' NOT NULL,
	max_output_tokens BIGINT DEFAULT '0' NOT NULL,
	currency TEXT DEFAULT 'usd' NOT NULL,
	cost_pico BIGINT,
	price_ids TEXT DEFAULT '[]' NOT NULL,
	accepted_at BIGINT NOT NULL,
	first_token_at BIGINT,
	settled_at BIGINT,
	ttft_us BIGINT,
	total_us BIGINT,
	gpu_us BIGINT,
	CONSTRAINT pk_usage_event PRIMARY KEY (event_id),
	CONSTRAINT ck_usage_event_ck_usage_event_settled CHECK ((status = 'reserved') = (settled_at IS NULL)),
	CONSTRAINT ck_usage_event_ck_usage_event_count_quality CHECK (count_quality IN ('none', 'exact', 'checkpoint')),
	CONSTRAINT ck_usage_event_ck_usage_event_components CHECK (operation <> 'chat' OR input_tokens = tok_system + tok_history + tok_context + tok_question + tok_template),
	CONSTRAINT ck_usage_event_ck_usage_event_operation CHECK (operation IN ('chat', 'rewrite', 'embed_query', 'embed_doc', 'rerank', 'judge')),
	CONSTRAINT ck_usage_event_ck_usage_event_status CHECK (status IN ('reserved', 'completed', 'client_abort', 'server_abort', 'error', 'recovered', 'rejected')),
	CONSTRAINT ck_usage_event_ck_usage_event_cached CHECK (input_cached_tokens BETWEEN 0 AND input_tokens),
	CONSTRAINT ck_usage_event_ck_usage_event_delivered CHECK (output_delivered_tokens BETWEEN 0 AND output_tokens),
	CONSTRAINT ck_usage_event_ck_usage_event_reasoning CHECK (output_reasoning_tokens BETWEEN 0 AND output_tokens),
	CONSTRAINT ck_usage_event_ck_usage_event_max_output CHECK (output_tokens <= max_output_tokens),
	CONSTRAINT ck_usage_event_ck_usage_event_no_negative_component CHECK (tok_system >= 0 AND tok_history >= 0 AND tok_context >= 0 AND tok_question >= 0 AND tok_template >= 0),
	CONSTRAINT fk_usage_event_request_id FOREIGN KEY(request_id) REFERENCES api_request (request_id)
);
CREATE INDEX ix_usage_event_api_key_id_settled_at ON usage_event (api_key_id, settled_at);
CREATE INDEX ix_usage_event_open ON usage_event (accepted_at) WHERE status = 'reserved';
CREATE INDEX ix_usage_event_request_id ON usage_event (request_id);
CREATE INDEX ix_usage_event_settled_at_event_id ON usage_event (settled_at, event_id);
CREATE INDEX ix_usage_event_tenant_id_settled_at ON usage_event (tenant_id, settled_at);
CREATE TABLE usage_event_document (
	event_id TEXT NOT NULL,
	document_id TEXT NOT NULL,
	chunks BIGINT NOT NULL,
	tokens BIGINT NOT NULL,
	CONSTRAINT pk_usage_event_document PRIMARY KEY (event_id, document_id),
	CONSTRAINT ck_usage_event_document_ck_usage_event_document_chunks CHECK (chunks >= 0),
	CONSTRAINT ck_usage_event_document_ck_usage_event_document_tokens CHECK (tokens >= 0),
	CONSTRAINT fk_usage_event_document_event_id FOREIGN KEY(event_id) REFERENCES usage_event (event_id)
);
CREATE INDEX ix_usage_event_document_document_id ON usage_event_document (document_id);
CREATE TRIGGER usage_event_no_update BEFORE UPDATE ON usage_event WHEN (OLD.status <> 'reserved') BEGIN SELECT RAISE(ABORT, 'usage_event is immutable once settled'); END;
CREATE TRIGGER usage_event_no_delete BEFORE DELETE ON usage_event  BEGIN SELECT RAISE(ABORT, 'usage_event rows are never deleted'); END;
CREATE TRIGGER usage_event_document_no_delete BEFORE DELETE ON usage_event_document  BEGIN SELECT RAISE(ABORT, 'usage_event_document rows are never deleted'); END;
CREATE TRIGGER api_request_no_update BEFORE UPDATE ON api_request  BEGIN SELECT RAISE(ABORT, 'api_request is immutable'); END;
CREATE TRIGGER api_request_no_delete BEFORE DELETE ON api_request  BEGIN SELECT RAISE(ABORT, 'api_request rows are never deleted'); END;
CREATE TRIGGER usage_event_document_no_update BEFORE UPDATE ON usage_event_document WHEN (NEW.tokens <> 0 OR NEW.event_id <> OLD.event_id OR NEW.document_id <> OLD.document_id OR NEW.chunks <> OLD.chunks OR NOT EXISTS (SELECT 1 FROM usage_event WHERE event_id = OLD.event_id AND status <> 'reserved' AND input_tokens = 0)) BEGIN SELECT RAISE(ABORT, 'usage_event_document is immutable'); END;
CREATE TABLE conversation (
	id TEXT NOT NULL,
	tenant_id TEXT NOT NULL,
	user_id TEXT NOT NULL,
	key_id TEXT,
	title TEXT,
	metadata JSON NOT NULL,
	created_at DOUBLE NOT NULL,
	updated_at DOUBLE NOT NULL, shared BOOLEAN DEFAULT 0 NOT NULL,
	CONSTRAINT pk_conversation PRIMARY KEY (id),
	CONSTRAINT fk_conversation_tenant_id FOREIGN KEY(tenant_id, user_id) REFERENCES app_user (tenant_id, id)
);
CREATE INDEX ix_conversation_tenant_id_created_at_id ON conversation (tenant_id, created_at, id);
CREATE TABLE conversation_turn (
	conversation_id TEXT NOT NULL,
	ordinal INTEGER NOT NULL,
	request_id TEXT NOT NULL,
	answered BOOLEAN NOT NULL,
	created_at DOUBLE NOT NULL,
	question TEXT NOT NULL,
	standalone TEXT,
	answer TEXT NOT NULL,
	citations JSON NOT NULL, making JSON,
	CONSTRAINT pk_conversation_turn PRIMARY KEY (conversation_id, ordinal),
	CONSTRAINT fk_conversation_turn_conversation_id FOREIGN KEY(conversation_id) REFERENCES conversation (id),
	CONSTRAINT uq_conversation_turn_request_id UNIQUE (request_id)
);
CREATE INDEX ix_job_status_tenant_id_user_id_next_attempt_at_id ON job (status, tenant_id, user_id, next_attempt_at, id);
CREATE INDEX ix_job_tenant_id_user_id_started_at ON job (tenant_id, user_id, started_at);
CREATE INDEX ix_job_tenant_id_created_at_id ON job (tenant_id, created_at, id);
CREATE INDEX ix_document_job_id ON document (job_id);
CREATE TABLE embedding_checkpoint (
	job_id TEXT NOT NULL,
	first_ordinal INTEGER NOT NULL,
	passages INTEGER NOT NULL,
	generation INTEGER NOT NULL,
	digest TEXT NOT NULL,
	event_id TEXT NOT NULL,
	tokens BIGINT NOT NULL,
	vectors BLOB NOT NULL,
	CONSTRAINT pk_embedding_checkpoint PRIMARY KEY (job_id, first_ordinal),
	CONSTRAINT fk_embedding_checkpoint_job_id FOREIGN KEY(job_id) REFERENCES job (id)
);
CREATE TABLE index_generation (
	id INTEGER NOT NULL,
	model TEXT NOT NULL,
	revision TEXT NOT NULL,
	dim INTEGER NOT NULL,
	metric TEXT NOT NULL,
	status TEXT NOT NULL,
	created_at DOUBLE NOT NULL,
	source TEXT DEFAULT '' NOT NULL,
	activated_at DOUBLE,
	replaced_at DOUBLE,
	rejected_at DOUBLE,
	purged_at DOUBLE,
	CONSTRAINT pk_index_generation PRIMARY KEY (id),
	CONSTRAINT ck_index_generation_ck_index_generation_status CHECK (status IN ('building', 'ready', 'active', 'previous', 'retired')),
	CONSTRAINT ck_index_generation_ck_index_generation_dim CHECK (dim > 0)
);
CREATE UNIQUE INDEX uq_index_generation_active ON index_generation (status) WHERE status = 'active';
CREATE UNIQUE INDEX uq_index_generation_building ON index_generation (status) WHERE status = 'building';
CREATE TABLE idempotent_request (
	id TEXT NOT NULL,
	fingerprint TEXT NOT NULL,
	boot_id TEXT NOT NULL,
	created_at DOUBLE NOT NULL,
	status INTEGER,
	media_type TEXT,
	body BLOB,
	CONSTRAINT pk_idempotent_request PRIMARY KEY (id)
);
CREATE INDEX ix_idempotent_request_created_at ON idempotent_request (created_at);
CREATE TABLE price (
	price_id TEXT NOT NULL,
	model_id TEXT NOT NULL,
	meter TEXT NOT NULL,
	currency TEXT NOT NULL,
	pico_per_token BIGINT NOT NULL,
	effective_from BIGINT NOT NULL,
	effective_to BIGINT,
	source TEXT DEFAULT '' NOT NULL,
	created_by TEXT NOT NULL,
	created_at BIGINT NOT NULL,
	CONSTRAINT pk_price PRIMARY KEY (price_id),
	CONSTRAINT ck_price_ck_price_meter CHECK (meter IN ('input', 'cached_input', 'output', 'embedding')),
	CONSTRAINT ck_price_ck_price_period CHECK (effective_to IS NULL OR effective_to > effective_from),
	CONSTRAINT ck_price_ck_price_not_negative CHECK (pico_per_token >= 0)
);
CREATE UNIQUE INDEX ix_price_model_id_meter_effective_from ON price (model_id, meter, effective_from);
CREATE TABLE usage_adjustment (
	adjustment_id TEXT NOT NULL,
	event_id TEXT NOT NULL,
	kind TEXT NOT NULL,
	tok_system BIGINT DEFAULT 0 NOT NULL,
	tok_history BIGINT DEFAULT 0 NOT NULL,
	tok_context BIGINT DEFAULT 0 NOT NULL,
	tok_question BIGINT DEFAULT 0 NOT NULL,
	tok_template BIGINT DEFAULT 0 NOT NULL,
	input_tokens BIGINT DEFAULT 0 NOT NULL,
	input_cached_tokens BIGINT DEFAULT 0 NOT NULL,
	output_tokens BIGINT DEFAULT 0 NOT NULL,
	output_delivered_tokens BIGINT DEFAULT 0 NOT NULL,
	cost_pico BIGINT DEFAULT 0 NOT NULL,
	currency TEXT NOT NULL,
	price_ids TEXT DEFAULT '[]' NOT NULL,
	reason TEXT NOT NULL,
	created_by TEXT NOT NULL,
	created_at BIGINT NOT NULL,
	CONSTRAINT pk_usage_adjustment PRIMARY KEY (adjustment_id),
	CONSTRAINT ck_usage_adjustment_ck_usage_adjustment_kind CHECK (kind IN ('rerate', 'correction')),
	CONSTRAINT fk_usage_adjustment_event_id FOREIGN KEY(event_id) REFERENCES usage_event (event_id)
);
CREATE INDEX ix_usage_adjustment_created_at_adjustment_id ON usage_adjustment (created_at, adjustment_id);
CREATE INDEX ix_usage_adjustment_event_id ON usage_adjustment (event_id);
CREATE TRIGGER usage_adjustment_no_update BEFORE UPDATE ON usage_adjustment BEGIN SELECT RAISE(ABORT, 'usage_adjustment is immutable'); END;
CREATE TRIGGER usage_adjustment_no_delete BEFORE DELETE ON usage_adjustment BEGIN SELECT RAISE(ABORT, 'usage_adjustment rows are never deleted'); END;
CREATE TRIGGER price_no_delete BEFORE DELETE ON price BEGIN SELECT RAISE(ABORT, 'price rows are never deleted'); END;
CREATE TRIGGER price_only_ended BEFORE UPDATE ON price WHEN OLD.effective_to IS NOT NULL OR NEW.effective_to IS NULL OR NEW.price_id <> OLD.price_id OR NEW.model_id <> OLD.model_id OR NEW.meter <> OLD.meter OR NEW.currency <> OLD.currency OR NEW.pico_per_token <> OLD.pico_per_token OR NEW.effective_from <> OLD.effective_from OR NEW.source <> OLD.source OR NEW.created_by <> OLD.created_by OR NEW.created_at <> OLD.created_at BEGIN SELECT RAISE(ABORT, 'a price can only be ended, once'); END;
CREATE TRIGGER price_no_overlap BEFORE INSERT ON price WHEN EXISTS (SELECT 1 FROM price AS other WHERE other.model_id = NEW.model_id AND other.meter = NEW.meter AND other.effective_from < COALESCE(NEW.effective_to, 9223372036854775807) AND COALESCE(other.effective_to, 9223372036854775807) > NEW.effective_from) BEGIN SELECT RAISE(ABORT, 'prices of one model and meter overlap'); END;
CREATE TABLE budget (
	budget_id TEXT NOT NULL,
	tenant_id TEXT NOT NULL,
	scope_type TEXT NOT NULL,
	scope_id TEXT NOT NULL,
	unit TEXT NOT NULL,
	limit_value BIGINT NOT NULL,
	period TEXT NOT NULL,
	tz TEXT DEFAULT 'UTC' NOT NULL,
	enforcement TEXT NOT NULL,
	thresholds TEXT DEFAULT '[]' NOT NULL,
	webhook_url TEXT DEFAULT '' NOT NULL,
	series BIGINT DEFAULT 1 NOT NULL,
	created_by TEXT NOT NULL,
	created_at BIGINT NOT NULL,
	deleted_at BIGINT,
	CONSTRAINT pk_budget PRIMARY KEY (budget_id),
	CONSTRAINT ck_budget_ck_budget_enforcement CHECK (enforcement IN ('hard', 'soft')),
	CONSTRAINT ck_budget_ck_budget_period CHECK (period IN ('minute', 'day', 'month', 'total')),
	CONSTRAINT ck_budget_ck_budget_scope_type CHECK (scope_type IN ('tenant', 'user', 'key', 'collection')),
	CONSTRAINT ck_budget_ck_budget_unit CHECK (unit IN ('tokens', 'cost')),
	CONSTRAINT ck_budget_ck_budget_limit_value CHECK (limit_value >= 0)
);
CREATE INDEX ix_budget_scope ON budget (tenant_id, scope_type, scope_id) WHERE deleted_at IS NULL;
CREATE TABLE budget_window (
	budget_id TEXT NOT NULL,
	series BIGINT NOT NULL,
	window_start BIGINT NOT NULL,
	window_end BIGINT,
	reserved BIGINT DEFAULT 0 NOT NULL,
	settled BIGINT DEFAULT 0 NOT NULL,
	CONSTRAINT pk_budget_window PRIMARY KEY (budget_id, series, window_start),
	CONSTRAINT ck_budget_window_ck_budget_window_reserved CHECK (reserved >= 0),
	CONSTRAINT ck_budget_window_ck_budget_window_settled CHECK (settled >= 0),
	CONSTRAINT fk_budget_window_budget_id FOREIGN KEY(budget_id) REFERENCES budget (budget_id)
);
CREATE TABLE budget_hold (
	event_id TEXT NOT NULL,
	budget_id TEXT NOT NULL,
	series BIGINT NOT NULL,
	window_start BIGINT NOT NULL,
	reserved BIGINT NOT NULL,
	settled BIGINT,
	CONSTRAINT pk_budget_hold PRIMARY KEY (event_id, budget_id),
	CONSTRAINT fk_budget_hold_budget_id FOREIGN KEY(budget_id, series, window_start) REFERENCES budget_window (budget_id, series, window_start)
);
CREATE INDEX ix_budget_hold_budget_id_series_window_start ON budget_hold (budget_id, series, window_start);
CREATE TABLE budget_alert (
	budget_id TEXT NOT NULL,
	series BIGINT NOT NULL,
	window_start BIGINT NOT NULL,
	percent BIGINT NOT NULL,
	reason TEXT NOT NULL,
	used BIGINT NOT NULL,
	limit_value BIGINT NOT NULL,
	fired_at BIGINT NOT NULL,
	delivery TEXT DEFAULT 'waiting' NOT NULL,
	attempts BIGINT DEFAULT 0 NOT NULL,
	next_attempt_at BIGINT NOT NULL,
	delivered_at BIGINT,
	CONSTRAINT pk_budget_alert PRIMARY KEY (budget_id, series, window_start, percent),
	CONSTRAINT ck_budget_alert_ck_budget_alert_reason CHECK (reason IN ('spent', 'refused')),
	CONSTRAINT ck_budget_alert_ck_budget_alert_delivery CHECK (delivery IN ('waiting', 'delivered', 'failed', 'logged')),
	CONSTRAINT fk_budget_alert_budget_id FOREIGN KEY(budget_id) REFERENCES budget (budget_id)
);
CREATE INDEX ix_budget_alert_fired_at ON budget_alert (fired_at);
CREATE INDEX ix_budget_alert_waiting ON budget_alert (next_attempt_at) WHERE delivery = 'waiting';
CREATE TABLE usage_rollup_15m (
	tenant_id TEXT NOT NULL,
	bucket_start BIGINT NOT NULL,
	project_id TEXT NOT NULL,
	user_id TEXT NOT NULL,
	api_key_id TEXT NOT NULL,
	model_id TEXT NOT NULL,
	operation TEXT NOT NULL,
	status TEXT NOT NULL,
	num_calls BIGINT DEFAULT 0 NOT NULL,
	num_unpriced BIGINT DEFAULT 0 NOT NULL,
	tok_system BIGINT DEFAULT 0 NOT NULL,
	tok_history BIGINT DEFAULT 0 NOT NULL,
	tok_context BIGINT DEFAULT 0 NOT NULL,
	tok_question BIGINT DEFAULT 0 NOT NULL,
	tok_template BIGINT DEFAULT 0 NOT NULL,
	input_tokens BIGINT DEFAULT 0 NOT NULL,
	input_cached_tokens BIGINT DEFAULT 0 NOT NULL,
	output_tokens BIGINT DEFAULT 0 NOT NULL,
	output_delivered_tokens BIGINT DEFAULT 0 NOT NULL,
	cost_high BIGINT DEFAULT 0 NOT NULL,
	cost_low BIGINT DEFAULT 0 NOT NULL,
	CONSTRAINT pk_usage_rollup_15m PRIMARY KEY (tenant_id, bucket_start, project_id, user_id, api_key_id, model_id, operation, status)
)
 WITHOUT ROWID;
CREATE TABLE usage_rollup_day (
	tz TEXT NOT NULL,
	tenant_id TEXT NOT NULL,
	bucket_start BIGINT NOT NULL,
	project_id TEXT NOT NULL,
	user_id TEXT NOT NULL,
	api_key_id TEXT NOT NULL,
	model_id TEXT NOT NULL,
	operation TEXT NOT NULL,
	status TEXT NOT NULL,
	num_calls BIGINT DEFAULT 0 NOT NULL,
	num_unpriced BIGINT DEFAULT 0 NOT NULL,
	tok_system BIGINT DEFAULT 0 NOT NULL,
	tok_history BIGINT DEFAULT 0 NOT NULL,
	tok_context BIGINT DEFAULT 0 NOT NULL,
	tok_question BIGINT DEFAULT 0 NOT NULL,
	tok_template BIGINT DEFAULT 0 NOT NULL,
	input_tokens BIGINT DEFAULT 0 NOT NULL,
	input_cached_tokens BIGINT DEFAULT 0 NOT NULL,
	output_tokens BIGINT DEFAULT 0 NOT NULL,
	output_delivered_tokens BIGINT DEFAULT 0 NOT NULL,
	cost_high BIGINT DEFAULT 0 NOT NULL,
	cost_low BIGINT DEFAULT 0 NOT NULL,
	CONSTRAINT pk_usage_rollup_day PRIMARY KEY (tz, tenant_id, bucket_start, project_id, user_id, api_key_id, model_id, operation, status)
)
 WITHOUT ROWID;
CREATE TABLE usage_rollup_month (
	tz TEXT NOT NULL,
	tenant_id TEXT NOT NULL,
	bucket_start BIGINT NOT NULL,
	project_id TEXT NOT NULL,
	user_id TEXT NOT NULL,
	api_key_id TEXT NOT NULL,
	model_id TEXT NOT NULL,
	operation TEXT NOT NULL,
	status TEXT NOT NULL,
	num_calls BIGINT DEFAULT 0 NOT NULL,
	num_unpriced BIGINT DEFAULT 0 NOT NULL,
	tok_system BIGINT DEFAULT 0 NOT NULL,
	tok_history BIGINT DEFAULT 0 NOT NULL,
	tok_context BIGINT DEFAULT 0 NOT NULL,
	tok_question BIGINT DEFAULT 0 NOT NULL,
	tok_template BIGINT DEFAULT 0 NOT NULL,
	input_tokens BIGINT DEFAULT 0 NOT NULL,
	input_cached_tokens BIGINT DEFAULT 0 NOT NULL,
	output_tokens BIGINT DEFAULT 0 NOT NULL,
	output_delivered_tokens BIGINT DEFAULT 0 NOT NULL,
	cost_high BIGINT DEFAULT 0 NOT NULL,
	cost_low BIGINT DEFAULT 0 NOT NULL,
	CONSTRAINT pk_usage_rollup_month PRIMARY KEY (tz, tenant_id, bucket_start, project_id, user_id, api_key_id, model_id, operation, status)
)
 WITHOUT ROWID;
CREATE INDEX ix_usage_rollup_month_user ON usage_rollup_month (tz, tenant_id, user_id, bucket_start);
CREATE TABLE usage_rollup_zone (
	tz TEXT NOT NULL,
	built_at BIGINT NOT NULL,
	CONSTRAINT pk_usage_rollup_zone PRIMARY KEY (tz)
);
CREATE TABLE engine_counter (
	boot_id TEXT NOT NULL,
	model_id TEXT NOT NULL,
	prefill_tokens BIGINT NOT NULL,
	cached_tokens BIGINT NOT NULL,
	decode_tokens BIGINT NOT NULL,
	requests BIGINT NOT NULL,
	started_at BIGINT NOT NULL,
	updated_at BIGINT NOT NULL,
	closed BOOLEAN NOT NULL,
	CONSTRAINT pk_engine_counter PRIMARY KEY (boot_id, model_id)
);
CREATE TABLE audit_event (
	audit_id TEXT NOT NULL,
	at BIGINT NOT NULL,
	tenant_id TEXT NOT NULL,
	user_id TEXT NOT NULL,
	api_key_id TEXT NOT NULL,
	request_id TEXT DEFAULT '' NOT NULL,
	action TEXT NOT NULL,
	target TEXT NOT NULL,
	detail TEXT DEFAULT '{}' NOT NULL,
	CONSTRAINT pk_audit_event PRIMARY KEY (audit_id)
);
CREATE INDEX ix_audit_event_tenant_id_at_audit_id ON audit_event (tenant_id, at, audit_id);
CREATE TRIGGER audit_event_no_update BEFORE UPDATE ON audit_event BEGIN SELECT RAISE(ABORT, 'audit_event is immutable'); END;
CREATE TRIGGER audit_event_no_delete BEFORE DELETE ON audit_event BEGIN SELECT RAISE(ABORT, 'audit_event rows are never deleted'); END;
CREATE TABLE reindexing (
	id TEXT NOT NULL,
	tenant_id TEXT NOT NULL,
	collection_id TEXT NOT NULL,
	created_at DOUBLE NOT NULL,
	CONSTRAINT pk_reindexing PRIMARY KEY (id)
);
CREATE INDEX ix_job_reindex_id ON job (reindex_id);
CREATE TABLE usage_rollup_facet (
	tz TEXT NOT NULL,
	tenant_id TEXT NOT NULL,
	facet TEXT NOT NULL,
	width TEXT NOT NULL,
	bucket_start BIGINT NOT NULL,
	operation TEXT NOT NULL,
	value TEXT NOT NULL,
	num_aborted BIGINT DEFAULT 0 NOT NULL,
	num_recovered BIGINT DEFAULT 0 NOT NULL,
	num_adjustments BIGINT DEFAULT 0 NOT NULL,
	num_calls BIGINT DEFAULT 0 NOT NULL,
	num_unpriced BIGINT DEFAULT 0 NOT NULL,
	tok_system BIGINT DEFAULT 0 NOT NULL,
	tok_history BIGINT DEFAULT 0 NOT NULL,
	tok_context BIGINT DEFAULT 0 NOT NULL,
	tok_question BIGINT DEFAULT 0 NOT NULL,
	tok_template BIGINT DEFAULT 0 NOT NULL,
	input_tokens BIGINT DEFAULT 0 NOT NULL,
	input_cached_tokens BIGINT DEFAULT 0 NOT NULL,
	output_tokens BIGINT DEFAULT 0 NOT NULL,
	output_delivered_tokens BIGINT DEFAULT 0 NOT NULL,
	cost_high BIGINT DEFAULT 0 NOT NULL,
	cost_low BIGINT DEFAULT 0 NOT NULL,
	CONSTRAINT pk_usage_rollup_facet PRIMARY KEY (tz, tenant_id, facet, width, bucket_start, operation, value),
	CONSTRAINT ck_usage_rollup_facet_ck_usage_rollup_facet_facet CHECK (facet IN ('user_id', 'model_id')),
	CONSTRAINT ck_usage_rollup_facet_ck_usage_rollup_facet_width CHECK (width IN ('day', 'month'))
)
 WITHOUT ROWID;
CREATE TABLE answer_citation (
	request_id TEXT NOT NULL,
	document_id TEXT NOT NULL,
	tenant_id TEXT NOT NULL,
	num_citations BIGINT NOT NULL,
	cited_at BIGINT NOT NULL,
	CONSTRAINT pk_answer_citation PRIMARY KEY (request_id, document_id),
	CONSTRAINT ck_answer_citation_ck_answer_citation_num_citations CHECK (num_citations > 0)
);
CREATE INDEX ix_answer_citation_tenant_id_cited_at ON answer_citation (tenant_id, cited_at);
CREATE INDEX ix_app_user_tenant_id_created_at_id ON app_user (tenant_id, created_at, id);
CREATE UNIQUE INDEX uq_api_key_previous_sha256 ON api_key (previous_sha256);
CREATE TABLE access_session (
	id TEXT NOT NULL,
	secret_sha256 TEXT NOT NULL,
	tenant_id TEXT NOT NULL,
	user_id TEXT NOT NULL,
	key_id TEXT,
	role TEXT,
	created_at DOUBLE NOT NULL,
	expires_at DOUBLE NOT NULL,
	CONSTRAINT pk_access_session PRIMARY KEY (id),
	CONSTRAINT fk_access_session_tenant_id FOREIGN KEY(tenant_id, user_id) REFERENCES app_user (tenant_id, id),
	CONSTRAINT fk_access_session_key_id FOREIGN KEY(key_id) REFERENCES api_key (id),
	CONSTRAINT ck_access_session_ck_access_session_role CHECK (role IN ('admin', 'member', 'reader')),
	CONSTRAINT ck_access_session_ck_access_session_key_or_role CHECK ((key_id IS NULL) <> (role IS NULL)),
	CONSTRAINT uq_access_session_secret_sha256 UNIQUE (secret_sha256)
);
CREATE INDEX ix_access_session_expires_at ON access_session (expires_at);
CREATE INDEX ix_access_session_key_id ON access_session (key_id);
CREATE INDEX ix_access_session_tenant_id_user_id ON access_session (tenant_id, user_id);
CREATE TABLE user_identity (
	issuer TEXT NOT NULL,
	subject TEXT NOT NULL,
	tenant_id TEXT NOT NULL,
	user_id TEXT NOT NULL,
	created_at DOUBLE NOT NULL,
	CONSTRAINT pk_user_identity PRIMARY KEY (issuer, subject, tenant_id),
	CONSTRAINT fk_user_identity_tenant_id FOREIGN KEY(tenant_id, user_id) REFERENCES app_user (tenant_id, id)
);
CREATE TABLE quota_override (
	scope_type TEXT NOT NULL,
	scope_id TEXT NOT NULL,
	tenant_id TEXT NOT NULL,
	requests_per_minute BIGINT,
	tokens_per_minute BIGINT,
	concurrent_requests BIGINT,
	updated_at DOUBLE NOT NULL,
	CONSTRAINT pk_quota_override PRIMARY KEY (scope_type, scope_id),
	CONSTRAINT ck_quota_override_ck_quota_override_scope_type CHECK (scope_type IN ('key', 'tenant')),
	CONSTRAINT fk_quota_override_tenant_id FOREIGN KEY(tenant_id) REFERENCES tenant (id)
);
CREATE INDEX ix_quota_override_tenant_id ON quota_override (tenant_id);
CREATE TABLE unattached_file (
	id TEXT NOT NULL,
	tenant_id TEXT NOT NULL,
	key_id TEXT NOT NULL,
	filename TEXT NOT NULL,
	bytes BIGINT NOT NULL,
	sha256 TEXT NOT NULL,
	purpose TEXT NOT NULL,
	created_at DOUBLE NOT NULL,
	CONSTRAINT pk_unattached_file PRIMARY KEY (id),
	CONSTRAINT fk_unattached_file_tenant_id FOREIGN KEY(tenant_id) REFERENCES tenant (id)
);
CREATE INDEX ix_unattached_file_tenant_id_id ON unattached_file (tenant_id, id);
CREATE TABLE file_batch (
	id TEXT NOT NULL,
	collection_id TEXT NOT NULL,
	created_at DOUBLE NOT NULL,
	cancelled_at DOUBLE,
	file_ids JSON NOT NULL,
	CONSTRAINT pk_file_batch PRIMARY KEY (id),
	CONSTRAINT fk_file_batch_collection_id FOREIGN KEY(collection_id) REFERENCES collection (id) ON DELETE CASCADE
);
CREATE INDEX ix_file_batch_collection_id ON file_batch (collection_id);
CREATE TABLE feedback (
	request_id TEXT NOT NULL,
	user_id TEXT NOT NULL,
	tenant_id TEXT NOT NULL,
	score DOUBLE NOT NULL,
	comment TEXT,
	created_at DOUBLE NOT NULL,
	updated_at DOUBLE NOT NULL,
	CONSTRAINT pk_feedback PRIMARY KEY (request_id, user_id),
	CONSTRAINT ck_feedback_ck_feedback_score CHECK (score BETWEEN -1 AND 1),
	CONSTRAINT fk_feedback_tenant_id FOREIGN KEY(tenant_id, user_id) REFERENCES app_user (tenant_id, id)
);
CREATE INDEX ix_feedback_tenant_id_created_at_request_id_user_id ON feedback (tenant_id, created_at, request_id, user_id);
INSERT INTO alembic_version (version_num) VALUES ('0020');
