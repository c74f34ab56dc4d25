CREATE FUNCTION ledger_refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION '%', TG_ARGV[0] USING ERRCODE = 'integrity_constraint_violation'; END $$;

CREATE FUNCTION ledger_refuse_share() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF NEW.tokens <> 0 OR NEW.event_id <> OLD.event_id OR NEW.document_id <> OLD.document_id OR NEW.chunks <> OLD.chunks OR NOT EXISTS (SELECT 1 FROM usage_event WHERE event_id = OLD.event_id AND status <> 'reserved' AND input_tokens = 0) THEN RAISE EXCEPTION 'usage_event_document is immutable' USING ERRCODE = 'integrity_constraint_violation'; END IF; RETURN NEW; END $$;

CREATE FUNCTION price_refuse_overlap() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_advisory_xact_lock(hashtextextended('price', 0)); IF EXISTS (SELECT 1 FROM price AS other WHERE other.model_id = NEW.model_id AND other.meter = NEW.meter AND other.effective_from < COALESCE(NEW.effective_to, 9223372036854775807) AND COALESCE(other.effective_to, 9223372036854775807) > NEW.effective_from) THEN RAISE EXCEPTION 'prices of one model and meter overlap' USING ERRCODE = 'integrity_constraint_violation'; END IF; RETURN NEW; END $$;

CREATE TABLE tenant (
    id text NOT NULL,
    created_at double precision NOT NULL,
    name text DEFAULT ''::text NOT NULL,
    disabled_at double precision,
    CONSTRAINT pk_tenant PRIMARY KEY (id)
);

CREATE TABLE app_user (
    tenant_id text NOT NULL,
    id text NOT NULL,
    created_at double precision NOT NULL,
    name text DEFAULT ''::text NOT NULL,
    disabled_at double precision,
    CONSTRAINT pk_app_user PRIMARY KEY (tenant_id, id),
    CONSTRAINT fk_app_user_tenant_id FOREIGN KEY (tenant_id) REFERENCES tenant(id)
);

CREATE INDEX ix_app_user_tenant_id_created_at_id ON app_user USING btree (tenant_id, created_at, id);

CREATE TABLE api_key (
    id text NOT NULL,
    tenant_id text NOT NULL,
    user_id text NOT NULL,
    name text NOT NULL,
    role text NOT NULL,
    collections json,
    prefix text NOT NULL,
    secret_sha256 text NOT NULL,
    created_at double precision NOT NULL,
    expires_at double precision,
    revoked_at double precision,
    rotated_at double precision,
    previous_prefix text,
    previous_sha256 text,
    previous_expires_at double precision,
    CONSTRAINT pk_api_key PRIMARY KEY (id),
    CONSTRAINT uq_api_key_secret_sha256 UNIQUE (secret_sha256),
    CONSTRAINT fk_api_key_tenant_id FOREIGN KEY (tenant_id, user_id) REFERENCES app_user(tenant_id, id),
    CONSTRAINT ck_api_key_ck_api_key_role CHECK (role = ANY (ARRAY['admin'::text, 'member'::text, 'reader'::text]))
);

CREATE INDEX ix_api_key_tenant_id_created_at ON api_key USING btree (tenant_id, created_at);

CREATE UNIQUE INDEX uq_api_key_previous_sha256 ON api_key USING btree (previous_sha256);

CREATE TABLE access_session (
    id text NOT NULL,
    secret_sha256 text NOT NULL,
    tenant_id text NOT NULL,
    user_id text NOT NULL,
    key_id text,
    role text,
    created_at double precision NOT NULL,
    expires_at double precision NOT NULL,
    CONSTRAINT pk_access_session PRIMARY KEY (id),
    CONSTRAINT uq_access_session_secret_sha256 UNIQUE (secret_sha256),
    CONSTRAINT fk_access_session_tenant_id FOREIGN KEY (tenant_id, user_id) REFERENCES app_user(tenant_id, id),
    CONSTRAINT fk_access_session_key_id FOREIGN KEY (key_id) REFERENCES api_key(id),
    CONSTRAINT ck_access_session_ck_access_session_role CHECK (role = ANY (ARRAY['admin'::text, 'member'::text, 'reader'::text])),
    CONSTRAINT ck_access_session_ck_access_session_key_or_role CHECK ((key_id IS NULL) <> (role IS NULL))
);

CREATE INDEX ix_access_session_expires_at ON access_session USING btree (expires_at);

CREATE INDEX ix_access_session_key_id ON access_session USING btree (key_id);

CREATE INDEX ix_access_session_tenant_id_user_id ON access_session USING btree (tenant_id, user_id);

CREATE TABLE user_identity (
    issuer text NOT NULL,
    subject text NOT NULL,
    tenant_id text NOT NULL,
    user_id text NOT NULL,
    created_at double precision NOT NULL,
    CONSTRAINT pk_user_identity PRIMARY KEY (issuer, subject, tenant_id),
    CONSTRAINT fk_user_identity_tenant_id FOREIGN KEY (tenant_id, user_id) REFERENCES app_user(tenant_id, id)
);

CREATE TABLE quota_override (
    scope_type text NOT NULL,
    scope_id text NOT NULL,
    tenant_id text NOT NULL,
    requests_per_minute bigint,
    tokens_per_minute bigint,
    concurrent_requests bigint,
    updated_at double precision NOT NULL,
    CONSTRAINT pk_quota_override PRIMARY KEY (scope_type, scope_id),
    CONSTRAINT fk_quota_override_tenant_id FOREIGN KEY (tenant_id) REFERENCES tenant(id),
    CONSTRAINT ck_quota_override_ck_quota_override_scope_type CHECK (scope_type = ANY (ARRAY['key'::text, 'tenant'::text]))
);

CREATE INDEX ix_quota_override_tenant_id ON quota_override USING btree (tenant_id);

CREATE TABLE collection (
    id text NOT NULL,
    tenant_id text NOT NULL,
    name text NOT NULL,
    metadata jsonb NOT NULL,
    created_at double precision NOT NULL,
    CONSTRAINT pk_collection PRIMARY KEY (id),
    CONSTRAINT uq_collection_tenant_id_name UNIQUE (tenant_id, name),
    CONSTRAINT fk_collection_tenant_id FOREIGN KEY (tenant_id) REFERENCES tenant(id)
);

CREATE TABLE index_generation (
    id serial NOT NULL,
    model text NOT NULL,
    revision text NOT NULL,
    dim integer NOT NULL,
    metric text NOT NULL,
    status text NOT NULL,
    created_at double precision NOT NULL,
    source text DEFAULT ''::text NOT NULL,
    activated_at double precision,
    replaced_at double precision,
    rejected_at double precision,
    purged_at double precision,
    CONSTRAINT pk_index_generation PRIMARY KEY (id),
    CONSTRAINT ck_index_generation_ck_index_generation_dim CHECK (dim > 0),
    CONSTRAINT ck_index_generation_ck_index_generation_status CHECK (status = ANY (ARRAY['building'::text, 'ready'::text, 'active'::text, 'previous'::text, 'retired'::text]))
);

CREATE UNIQUE INDEX uq_index_generation_active ON index_generation USING btree (status) WHERE status = 'active'::text;

CREATE UNIQUE INDEX uq_index_generation_building ON index_generation USING btree (status) WHERE status = 'building'::text;

CREATE TABLE document (
    id text NOT NULL,
    tenant_id text NOT NULL,
    collection_id text NOT NULL,
    external_id text,
    content_key text,
    version integer NOT NULL,
    live_version integer,
    status text NOT NULL,
    done integer NOT NULL,
    total integer NOT NULL,
    job_id text NOT NULL,
    created_at double precision NOT NULL,
    updated_at double precision NOT NULL,
    metadata jsonb NOT NULL,
    CONSTRAINT pk_document PRIMARY KEY (id),
    CONSTRAINT uq_document_tenant_id_collection_id_content_key UNIQUE (tenant_id, collection_id, content_key),
    CONSTRAINT uq_document_tenant_id_collection_id_external_id UNIQUE (tenant_id, collection_id, external_id),
    CONSTRAINT fk_document_collection_id FOREIGN KEY (collection_id) REFERENCES collection(id),
    CONSTRAINT fk_document_tenant_id FOREIGN KEY (tenant_id) REFERENCES tenant(id),
    CONSTRAINT ck_document_ck_document_status CHECK (status = ANY (ARRAY['queued'::text, 'extracting'::text, 'chunking'::text, 'embedding'::text, 'indexed'::text, 'failed'::text, 'deleting'::text])),
    CONSTRAINT ck_document_ck_document_live_version CHECK (live_version <= version)
);

CREATE INDEX ix_document_collection_id ON document USING btree (collection_id);

CREATE INDEX ix_document_tenant_id_created_at_id ON document USING btree (tenant_id, created_at, id);

CREATE INDEX ix_document_job_id ON document USING btree (job_id);

CREATE TABLE document_version (
    document_id text NOT NULL,
    version integer NOT NULL,
    filename text NOT NULL,
    bytes bigint NOT NULL,
    sha256 text NOT NULL,
    media_type text,
    page_count integer NOT NULL,
    first_key bigint,
    chunk_count integer NOT NULL,
    token_count integer NOT NULL,
    generation integer,
    embedding_tokens bigint NOT NULL,
    created_at double precision NOT NULL,
    indexed_at double precision,
    title text,
    text text,
    pages json,
    blocks json,
    CONSTRAINT pk_document_version PRIMARY KEY (document_id, version),
    CONSTRAINT fk_document_version_document_id FOREIGN KEY (document_id) REFERENCES document(id),
    CONSTRAINT fk_document_version_generation FOREIGN KEY (generation) REFERENCES index_generation(id)
);

CREATE INDEX ix_document_version_sha256 ON document_version USING btree (sha256);

CREATE TABLE chunk (
    key bigint NOT NULL,
    document_id text NOT NULL,
    version integer NOT NULL,
    ordinal integer NOT NULL,
    start_char integer NOT NULL,
    end_char integer NOT NULL,
    page_start integer,
    page_end integer,
    token_count integer NOT NULL,
    heading_path json NOT NULL,
    heading text NOT NULL,
    text text NOT NULL,
    search_vector tsvector GENERATED ALWAYS AS (to_tsvector('simple'::regconfig, (heading || ' '::text) || text)) STORED,
    table_header text DEFAULT ''::text NOT NULL,
    CONSTRAINT pk_chunk PRIMARY KEY (key),
    CONSTRAINT uq_chunk_document_id_version_ordinal UNIQUE (document_id, version, ordinal),
    CONSTRAINT fk_chunk_document_id FOREIGN KEY (document_id) REFERENCES document(id)
);

CREATE INDEX ix_chunk_search_vector ON chunk USING gin (search_vector);

CREATE TABLE chunk_vector (
    key bigint NOT NULL,
    generation integer NOT NULL,
    vector bytea NOT NULL,
    CONSTRAINT pk_chunk_vector PRIMARY KEY (key, generation),
    CONSTRAINT fk_chunk_vector_generation FOREIGN KEY (generation) REFERENCES index_generation(id),
    CONSTRAINT fk_chunk_vector_key FOREIGN KEY (key) REFERENCES chunk(key)
);

CREATE TABLE key_counter (
    name text NOT NULL,
    next_key bigint NOT NULL,
    CONSTRAINT pk_key_counter PRIMARY KEY (name)
);

CREATE TABLE job (
    id text NOT NULL,
    tenant_id text NOT NULL,
    document_id text NOT NULL,
    version integer NOT NULL,
    status text NOT NULL,
    attempts integer NOT NULL,
    replace boolean NOT NULL,
    user_id text NOT NULL,
    key_id text NOT NULL,
    boot_id text,
    error_code text,
    error_detail text,
    created_at double precision NOT NULL,
    started_at double precision,
    finished_at double precision,
    next_attempt_at double precision DEFAULT 0 NOT NULL,
    crashes integer DEFAULT 0 NOT NULL,
    reindex_id text,
    CONSTRAINT pk_job PRIMARY KEY (id),
    CONSTRAINT ck_job_ck_job_status CHECK (status = ANY (ARRAY['queued'::text, 'running'::text, 'done'::text, 'failed'::text, 'cancelled'::text]))
);

CREATE INDEX ix_job_document_id ON job USING btree (document_id);

CREATE INDEX ix_job_status_tenant_id_user_id_next_attempt_at_id ON job USING btree (status, tenant_id, user_id, next_attempt_at, id);

CREATE INDEX ix_job_tenant_id_user_id_started_at ON job USING btree (tenant_id, user_id, started_at);

CREATE INDEX ix_job_tenant_id_created_at_id ON job USING btree (tenant_id, created_at, id);

CREATE INDEX ix_job_reindex_id ON job USING btree (reindex_id);

CREATE TABLE embedding_checkpoint (
    job_id text NOT NULL,
    first_ordinal integer NOT NULL,
    passages integer NOT NULL,
    generation integer NOT NULL,
    digest text NOT NULL,
    event_id text NOT NULL,
    tokens bigint NOT NULL,
    vectors bytea NOT NULL,
    CONSTRAINT pk_embedding_checkpoint PRIMARY KEY (job_id, first_ordinal),
    CONSTRAINT fk_embedding_checkpoint_job_id FOREIGN KEY (job_id) REFERENCES job(id)
);

CREATE TABLE reindexing (
    id text NOT NULL,
    tenant_id text NOT NULL,
    collection_id text NOT NULL,
    created_at double precision NOT NULL,
    CONSTRAINT pk_reindexing PRIMARY KEY (id)
);

CREATE TABLE unattached_file (
    id text NOT NULL,
    tenant_id text NOT NULL,
    key_id text NOT NULL,
    filename text NOT NULL,
    bytes bigint NOT NULL,
    sha256 text NOT NULL,
    purpose text NOT NULL,
    created_at double precision NOT NULL,
    CONSTRAINT pk_unattached_file PRIMARY KEY (id),
    CONSTRAINT fk_unattached_file_tenant_id FOREIGN KEY (tenant_id) REFERENCES tenant(id)
);

CREATE INDEX ix_unattached_file_tenant_id_id ON unattached_file USING btree (tenant_id, id);

CREATE TABLE file_batch (
    id text NOT NULL,
    collection_id text NOT NULL,
    created_at double precision NOT NULL,
    cancelled_at double precision,
    file_ids json NOT NULL,
    CONSTRAINT pk_file_batch PRIMARY KEY (id),
    CONSTRAINT fk_file_batch_collection_id FOREIGN KEY (collection_id) REFERENCES collection(id) ON DELETE CASCADE
);

CREATE INDEX ix_file_batch_collection_id ON file_batch USING btree (collection_id);

CREATE TABLE conversation (
    id text NOT NULL,
    tenant_id text NOT NULL,
    user_id text NOT NULL,
    key_id text,
    title text,
    metadata jsonb NOT NULL,
    created_at double precision NOT NULL,
    updated_at double precision NOT NULL,
    shared boolean DEFAULT false NOT NULL,
    CONSTRAINT pk_conversation PRIMARY KEY (id),
    CONSTRAINT fk_conversation_tenant_id FOREIGN KEY (tenant_id, user_id) REFERENCES app_user(tenant_id, id)
);

CREATE INDEX ix_conversation_tenant_id_created_at_id ON conversation USING btree (tenant_id, created_at, id);

CREATE TABLE conversation_turn (
    conversation_id text NOT NULL,
    ordinal integer NOT NULL,
    request_id text NOT NULL,
    answered boolean NOT NULL,
    created_at double precision NOT NULL,
    question text NOT NULL,
    standalone text,
    answer text NOT NULL,
    citations json NOT NULL,
    making json,
    CONSTRAINT pk_conversation_turn PRIMARY KEY (conversation_id, ordinal),
    CONSTRAINT uq_conversation_turn_request_id UNIQUE (request_id),
    CONSTRAINT fk_conversation_turn_conversation_id FOREIGN KEY (conversation_id) REFERENCES conversation(id)
);

CREATE TABLE feedback (
    request_id text NOT NULL,
    user_id text NOT NULL,
    tenant_id text NOT NULL,
    score double precision NOT NULL,
    comment text,
    created_at double precision NOT NULL,
    updated_at double precision NOT NULL,
    CONSTRAINT pk_feedback PRIMARY KEY (request_id, user_id),
    CONSTRAINT fk_feedback_tenant_id FOREIGN KEY (tenant_id, user_id) REFERENCES app_user(tenant_id, id),
    CONSTRAINT ck_feedback_ck_feedback_score CHECK (score >= '-1'::integer::double precision AND score <= 1::double precision)
);

CREATE INDEX ix_feedback_tenant_id_created_at_request_id_user_id ON feedback USING btree (tenant_id, created_at, request_id, user_id);

CREATE TABLE answer_citation (
    request_id text NOT NULL,
    document_id text NOT NULL,
    tenant_id text NOT NULL,
    num_citations bigint NOT NULL,
    cited_at bigint NOT NULL,
    CONSTRAINT pk_answer_citation PRIMARY KEY (request_id, document_id),
    CONSTRAINT ck_answer_citation_ck_answer_citation_num_citations CHECK (num_citations > 0)
);

CREATE INDEX ix_answer_citation_tenant_id_cited_at ON answer_citation USING btree (tenant_id, cited_at);

CREATE TABLE idempotent_request (
    id text NOT NULL,
    fingerprint text NOT NULL,
    boot_id text NOT NULL,
    created_at double precision NOT NULL,
    status integer,
    media_type text,
    body bytea,
    CONSTRAINT pk_idempotent_request PRIMARY KEY (id)
);

CREATE INDEX ix_idempotent_request_created_at ON idempotent_request USING btree (created_at);

CREATE TABLE api_request (
    request_id text NOT NULL,
    idem_key text DEFAULT ''::text NOT NULL,
    idem_fp text DEFAULT ''::text NOT NULL,
    tenant_id text NOT NULL,
    project_id text DEFAULT ''::text NOT NULL,
    user_id text DEFAULT ''::text NOT NULL,
    api_key_id text DEFAULT ''::text NOT NULL,
    endpoint text NOT NULL,
    accepted_at bigint NOT NULL,
    boot_id text NOT NULL,
    CONSTRAINT pk_api_request PRIMARY KEY (request_id)
);

CREATE UNIQUE INDEX ux_api_request_idem ON api_request USING btree (api_key_id, endpoint, idem_key) WHERE idem_key <> ''::text;

CREATE TABLE usage_event (
    event_id text NOT NULL,
    request_id text NOT NULL,
    operation text NOT NULL,
    tenant_id text NOT NULL,
    project_id text DEFAULT ''::text NOT NULL,
    user_id text DEFAULT ''::text NOT NULL,
    api_key_id text DEFAULT ''::text NOT NULL,
    boot_id text NOT NULL,
    model_id text NOT NULL,
    tokenizer_rev text NOT NULL,
    status text NOT NULL,
    count_quality text DEFAULT 'none'::text NOT NULL,
    tok_system bigint DEFAULT '0'::bigint NOT NULL,
    tok_history bigint DEFAULT '0'::bigint NOT NULL,
    tok_context bigint DEFAULT '0'::bigint NOT NULL,
    tok_question bigint DEFAULT '0'::bigint NOT NULL,
    tok_template bigint DEFAULT '0'::bigint NOT NULL,
    input_tokens bigint DEFAULT '0'::bigint NOT NULL,
    input_cached_tokens bigint DEFAULT '0'::bigint NOT NULL,
    output_tokens bigint DEFAULT '0'::bigint NOT NULL,
    output_reasoning_tokens bigint DEFAULT '0'::bigint NOT NULL,
    output_delivered_tokens bigint DEFAULT '0'::bigint NOT NULL,
    max_output_tokens bigint DEFAULT '0'::bigint NOT NULL,
    currency text DEFAULT 'usd'::text NOT NULL,
    cost_pico bigint,
    price_ids text DEFAULT '[]'::text NOT NULL,
    accepted_at bigint NOT NULL,
    first_token_at bigint,
    settled_at bigint,
    ttft_us bigint,
    total_us bigint,
    gpu_us bigint,
    CONSTRAINT pk_usage_event PRIMARY KEY (event_id),
    CONSTRAINT fk_usage_event_request_id FOREIGN KEY (request_id) REFERENCES api_request(request_id),
    CONSTRAINT ck_usage_event_ck_usage_event_settled CHECK ((status = 'reserved'::text) = (settled_at IS NULL)),
    CONSTRAINT ck_usage_event_ck_usage_event_count_quality CHECK (count_quality = ANY (ARRAY['none'::text, 'exact'::text, 'checkpoint'::text])),
    CONSTRAINT ck_usage_event_ck_usage_event_components CHECK (operation <> 'chat'::text OR input_tokens = (tok_system + tok_history + tok_context + tok_question + tok_template)),
    CONSTRAINT ck_usage_event_ck_usage_event_operation CHECK (operation = ANY (ARRAY['chat'::text, 'rewrite'::text, 'embed_query'::text, 'embed_doc'::text, 'rerank'::text, 'judge'::text])),
    CONSTRAINT ck_usage_event_ck_usage_event_status CHECK (status = ANY (ARRAY['reserved'::text, 'completed'::text, 'client_abort'::text, 'server_abort'::text, 'error'::text, 'recovered'::text, 'rejected'::text])),
    CONSTRAINT ck_usage_event_ck_usage_event_cached CHECK (input_cached_tokens >= 0 AND input_cached_tokens <= input_tokens),
    CONSTRAINT ck_usage_event_ck_usage_event_delivered CHECK (output_delivered_tokens >= 0 AND output_delivered_tokens <= output_tokens),
    CONSTRAINT ck_usage_event_ck_usage_event_reasoning CHECK (output_reasoning_tokens >= 0 AND output_reasoning_tokens <= output_tokens),
    CONSTRAINT ck_usage_event_ck_usage_event_max_output CHECK (output_tokens <= max_output_tokens),
    CONSTRAINT ck_usage_event_ck_usage_event_no_negative_component CHECK (tok_system >= 0 AND tok_history >= 0 AND tok_context >= 0 AND tok_question >= 0 AND tok_template >= 0)
);

CREATE INDEX ix_usage_event_api_key_id_settled_at ON usage_event USING btree (api_key_id, settled_at);

CREATE INDEX ix_usage_event_open ON usage_event USING btree (accepted_at) WHERE status = 'reserved'::text;

CREATE INDEX ix_usage_event_request_id ON usage_event USING btree (request_id);

CREATE INDEX ix_usage_event_settled_at_event_id ON usage_event USING btree (settled_at, event_id);

CREATE INDEX ix_usage_event_tenant_id_settled_at ON usage_event USING btree (tenant_id, settled_at);

CREATE TABLE usage_event_document (
    event_id text NOT NULL,
    document_id text NOT NULL,
    chunks bigint NOT NULL,
    tokens bigint NOT NULL,
    CONSTRAINT pk_usage_event_document PRIMARY KEY (event_id, document_id),
    CONSTRAINT fk_usage_event_document_event_id FOREIGN KEY (event_id) REFERENCES usage_event(event_id),
    CONSTRAINT ck_usage_event_document_ck_usage_event_document_chunks CHECK (chunks >= 0),
    CONSTRAINT ck_usage_event_document_ck_usage_event_document_tokens CHECK (tokens >= 0)
);

CREATE INDEX ix_usage_event_document_document_id ON usage_event_document USING btree (document_id);

CREATE TABLE price (
    price_id text NOT NULL,
    model_id text NOT NULL,
    meter text NOT NULL,
    currency text NOT NULL,
    pico_per_token bigint NOT NULL,
    effective_from bigint NOT NULL,
    effective_to bigint,
    source text DEFAULT ''::text NOT NULL,
    created_by text NOT NULL,
    created_at bigint NOT NULL,
    CONSTRAINT pk_price PRIMARY KEY (price_id),
    CONSTRAINT ck_price_ck_price_meter CHECK (meter = ANY (ARRAY['input'::text, 'cached_input'::text, 'output'::text, 'embedding'::text])),
    CONSTRAINT ck_price_ck_price_period CHECK (effective_to IS NULL OR effective_to > effective_from),
    CONSTRAINT ck_price_ck_price_not_negative CHECK (pico_per_token >= 0)
);

CREATE UNIQUE INDEX ix_price_model_id_meter_effective_from ON price USING btree (model_id, meter, effective_from);

CREATE TABLE usage_adjustment (
    adjustment_id text NOT NULL,
    event_id text NOT NULL,
    kind text NOT NULL,
    tok_system bigint DEFAULT 0 NOT NULL,
    tok_history bigint DEFAULT 0 NOT NULL,
    tok_context bigint DEFAULT 0 NOT NULL,
    tok_question bigint DEFAULT 0 NOT NULL,
    tok_template bigint DEFAULT 0 NOT NULL,
    input_tokens bigint DEFAULT 0 NOT NULL,
    input_cached_tokens bigint DEFAULT 0 NOT NULL,
    output_tokens bigint DEFAULT 0 NOT NULL,
    output_delivered_tokens bigint DEFAULT 0 NOT NULL,
    cost_pico bigint DEFAULT 0 NOT NULL,
    currency text NOT NULL,
    price_ids text DEFAULT '[]'::text NOT NULL,
    reason text NOT NULL,
    created_by text NOT NULL,
    created_at bigint NOT NULL,
    CONSTRAINT pk_usage_adjustment PRIMARY KEY (adjustment_id),
    CONSTRAINT fk_usage_adjustment_event_id FOREIGN KEY (event_id) REFERENCES usage_event(event_id),
    CONSTRAINT ck_usage_adjustment_ck_usage_adjustment_kind CHECK (kind = ANY (ARRAY['rerate'::text, 'correction'::text]))
);

CREATE INDEX ix_usage_adjustment_created_at_adjustment_id ON usage_adjustment USING btree (created_at, adjustment_id);

CREATE INDEX ix_usage_adjustment_event_id ON usage_adjustment USING btree (event_id);

CREATE TABLE budget (
    budget_id text NOT NULL,
    tenant_id text NOT NULL,
    scope_type text NOT NULL,
    scope_id text NOT NULL,
    unit text NOT NULL,
    limit_value bigint NOT NULL,
    period text NOT NULL,
    tz text DEFAULT 'UTC'::text NOT NULL,
    enforcement text NOT NULL,
    thresholds text DEFAULT '[]'::text NOT NULL,
    webhook_url text DEFAULT ''::text NOT NULL,
    series bigint DEFAULT 1 NOT NULL,
    created_by text NOT NULL,
    created_at bigint NOT NULL,
    deleted_at bigint,
    CONSTRAINT pk_budget PRIMARY KEY (budget_id),
    CONSTRAINT ck_budget_ck_budget_enforcement CHECK (enforcement = ANY (ARRAY['hard'::text, 'soft'::text])),
    CONSTRAINT ck_budget_ck_budget_period CHECK (period = ANY (ARRAY['minute'::text, 'day'::text, 'month'::text, 'total'::text])),
    CONSTRAINT ck_budget_ck_budget_scope_type CHECK (scope_type = ANY (ARRAY['tenant'::text, 'user'::text, 'key'::text, 'collection'::text])),
    CONSTRAINT ck_budget_ck_budget_unit CHECK (unit = ANY (ARRAY['tokens'::text, 'cost'::text])),
    CONSTRAINT ck_budget_ck_budget_limit_value CHECK (limit_value >= 0)
);

CREATE INDEX ix_budget_scope ON budget USING btree (tenant_id, scope_type, scope_id) WHERE deleted_at IS NULL;

CREATE TABLE budget_window (
    budget_id text NOT NULL,
    series bigint NOT NULL,
    window_start bigint NOT NULL,
    window_end bigint,
    reserved bigint DEFAULT 0 NOT NULL,
    settled bigint DEFAULT 0 NOT NULL,
    CONSTRAINT pk_budget_window PRIMARY KEY (budget_id, series, window_start),
    CONSTRAINT fk_budget_window_budget_id FOREIGN KEY (budget_id) REFERENCES budget(budget_id),
    CONSTRAINT ck_budget_window_ck_budget_window_reserved CHECK (reserved >= 0),
    CONSTRAINT ck_budget_window_ck_budget_window_settled CHECK (settled >= 0)
);

CREATE TABLE budget_hold (
    event_id text NOT NULL,
    budget_id text NOT NULL,
    series bigint NOT NULL,
    window_start bigint NOT NULL,
    reserved bigint NOT NULL,
    settled bigint,
    CONSTRAINT pk_budget_hold PRIMARY KEY (event_id, budget_id),
    CONSTRAINT fk_budget_hold_budget_id FOREIGN KEY (budget_id, series, window_start) REFERENCES budget_window(budget_id, series, window_start)
);

CREATE INDEX ix_budget_hold_budget_id_series_window_start ON budget_hold USING btree (budget_id, series, window_start);

CREATE TABLE budget_alert (
    budget_id text NOT NULL,
    series bigint NOT NULL,
    window_start bigint NOT NULL,
    percent bigint NOT NULL,
    reason text NOT NULL,
    used bigint NOT NULL,
    limit_value bigint NOT NULL,
    fired_at bigint NOT NULL,
    delivery text DEFAULT 'waiting'::text NOT NULL,
    attempts bigint DEFAULT 0 NOT NULL,
    next_attempt_at bigint NOT NULL,
    delivered_at bigint,
    CONSTRAINT pk_budget_alert PRIMARY KEY (budget_id, series, window_start, percent),
    CONSTRAINT fk_budget_alert_budget_id FOREIGN KEY (budget_id) REFERENCES budget(budget_id),
    CONSTRAINT ck_budget_alert_ck_budget_alert_reason CHECK (reason = ANY (ARRAY['spent'::text, 'refused'::text])),
    CONSTRAINT ck_budget_alert_ck_budget_alert_delivery CHECK (delivery = ANY (ARRAY['waiting'::text, 'delivered'::text, 'failed'::text, 'logged'::text]))
);

CREATE INDEX ix_budget_alert_fired_at ON budget_alert USING btree (fired_at);

CREATE INDEX ix_budget_alert_waiting ON budget_alert USING btree (next_attempt_at) WHERE delivery = 'waiting'::text;

CREATE TABLE usage_rollup_15m (
    tenant_id text NOT NULL,
    bucket_start bigint NOT NULL,
    project_id text NOT NULL,
    user_id text NOT NULL,
    api_key_id text NOT NULL,
    model_id text NOT NULL,
    operation text NOT NULL,
    status text NOT NULL,
    num_calls bigint DEFAULT 0 NOT NULL,
    num_unpriced bigint DEFAULT 0 NOT NULL,
    tok_system bigint DEFAULT 0 NOT NULL,
    tok_history bigint DEFAULT 0 NOT NULL,
    tok_context bigint DEFAULT 0 NOT NULL,
    tok_question bigint DEFAULT 0 NOT NULL,
    tok_template bigint DEFAULT 0 NOT NULL,
    input_tokens bigint DEFAULT 0 NOT NULL,
    input_cached_tokens bigint DEFAULT 0 NOT NULL,
    output_tokens bigint DEFAULT 0 NOT NULL,
    output_delivered_tokens bigint DEFAULT 0 NOT NULL,
    cost_high bigint DEFAULT 0 NOT NULL,
    cost_low bigint DEFAULT 0 NOT NULL,
    CONSTRAINT pk_usage_rollup_15m PRIMARY KEY (tenant_id, bucket_start, project_id, user_id, api_key_id, model_id, operation, status)
);

CREATE TABLE usage_rollup_day (
    tz text NOT NULL,
    tenant_id text NOT NULL,
    bucket_start bigint NOT NULL,
    project_id text NOT NULL,
    user_id text NOT NULL,
    api_key_id text NOT NULL,
    model_id text NOT NULL,
    operation text NOT NULL,
    status text NOT NULL,
    num_calls bigint DEFAULT 0 NOT NULL,
    num_unpriced bigint DEFAULT 0 NOT NULL,
    tok_system bigint DEFAULT 0 NOT NULL,
    tok_history bigint DEFAULT 0 NOT NULL,
    tok_context bigint DEFAULT 0 NOT NULL,
    tok_question bigint DEFAULT 0 NOT NULL,
    tok_template bigint DEFAULT 0 NOT NULL,
    input_tokens bigint DEFAULT 0 NOT NULL,
    input_cached_tokens bigint DEFAULT 0 NOT NULL,
    output_tokens bigint DEFAULT 0 NOT NULL,
    output_delivered_tokens bigint DEFAULT 0 NOT NULL,
    cost_high bigint DEFAULT 0 NOT NULL,
    cost_low bigint DEFAULT 0 NOT NULL,
    CONSTRAINT pk_usage_rollup_day PRIMARY KEY (tz, tenant_id, bucket_start, project_id, user_id, api_key_id, model_id, operation, status)
);

CREATE TABLE usage_rollup_month (
    tz text NOT NULL,
    tenant_id text NOT NULL,
    bucket_start bigint NOT NULL,
    project_id text NOT NULL,
    user_id text NOT NULL,
    api_key_id text NOT NULL,
    model_id text NOT NULL,
    operation text NOT NULL,
    status text NOT NULL,
    num_calls bigint DEFAULT 0 NOT NULL,
    num_unpriced bigint DEFAULT 0 NOT NULL,
    tok_system bigint DEFAULT 0 NOT NULL,
    tok_history bigint DEFAULT 0 NOT NULL,
    tok_context bigint DEFAULT 0 NOT NULL,
    tok_question bigint DEFAULT 0 NOT NULL,
    tok_template bigint DEFAULT 0 NOT NULL,
    input_tokens bigint DEFAULT 0 NOT NULL,
    input_cached_tokens bigint DEFAULT 0 NOT NULL,
    output_tokens bigint DEFAULT 0 NOT NULL,
    output_delivered_tokens bigint DEFAULT 0 NOT NULL,
    cost_high bigint DEFAULT 0 NOT NULL,
    cost_low bigint DEFAULT 0 NOT NULL,
    CONSTRAINT pk_usage_rollup_month PRIMARY KEY (tz, tenant_id, bucket_start, project_id, user_id, api_key_id, model_id, operation, status)
);

CREATE INDEX ix_usage_rollup_month_user ON usage_rollup_month USING btree (tz, tenant_id, user_id, bucket_start);

CREATE TABLE usage_rollup_facet (
    tz text NOT NULL,
    tenant_id text NOT NULL,
    facet text NOT NULL,
    width text NOT NULL,
    bucket_start bigint NOT NULL,
    operation text NOT NULL,
    value text NOT NULL,
    num_aborted bigint DEFAULT 0 NOT NULL,
    num_recovered bigint DEFAULT 0 NOT NULL,
    num_adjustments bigint DEFAULT 0 NOT NULL,
    num_calls bigint DEFAULT 0 NOT NULL,
    num_unpriced bigint DEFAULT 0 NOT NULL,
    tok_system bigint DEFAULT 0 NOT NULL,
    tok_history bigint DEFAULT 0 NOT NULL,
    tok_context bigint DEFAULT 0 NOT NULL,
    tok_question bigint DEFAULT 0 NOT NULL,
    tok_template bigint DEFAULT 0 NOT NULL,
    input_tokens bigint DEFAULT 0 NOT NULL,
    input_cached_tokens bigint DEFAULT 0 NOT NULL,
    output_tokens bigint DEFAULT 0 NOT NULL,
    output_delivered_tokens bigint DEFAULT 0 NOT NULL,
    cost_high bigint DEFAULT 0 NOT NULL,
    cost_low bigint DEFAULT 0 NOT NULL,
    CONSTRAINT pk_usage_rollup_facet PRIMARY KEY (tz, tenant_id, facet, width, bucket_start, operation, value),
    CONSTRAINT ck_usage_rollup_facet_ck_usage_rollup_facet_facet CHECK (facet = ANY (ARRAY['user_id'::text, 'model_id'::text])),
    CONSTRAINT ck_usage_rollup_facet_ck_usage_rollup_facet_width CHECK (width = ANY (ARRAY['day'::text, 'month'::text]))
);

CREATE TABLE usage_rollup_zone (
    tz text NOT NULL,
    built_at bigint NOT NULL,
    CONSTRAINT pk_usage_rollup_zone PRIMARY KEY (tz)
);

CREATE TABLE engine_counter (
    boot_id text NOT NULL,
    model_id text NOT NULL,
    prefill_tokens bigint NOT NULL,
    cached_tokens bigint NOT NULL,
    decode_tokens bigint NOT NULL,
    requests bigint NOT NULL,
    started_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    closed boolean NOT NULL,
    CONSTRAINT pk_engine_counter PRIMARY KEY (boot_id, model_id)
);

CREATE TABLE audit_event (
    audit_id text NOT NULL,
    at bigint NOT NULL,
    tenant_id text NOT NULL,
    user_id text NOT NULL,
    api_key_id text NOT NULL,
    request_id text DEFAULT ''::text NOT NULL,
    action text NOT NULL,
    target text NOT NULL,
    detail text DEFAULT '{}'::text NOT NULL,
    CONSTRAINT pk_audit_event PRIMARY KEY (audit_id)
);

CREATE INDEX ix_audit_event_tenant_id_at_audit_id ON audit_event USING btree (tenant_id, at, audit_id);

CREATE TRIGGER usage_event_no_update BEFORE UPDATE ON usage_event FOR EACH ROW WHEN (old.status <> 'reserved'::text) EXECUTE FUNCTION ledger_refuse('usage_event is immutable once settled');

CREATE TRIGGER usage_event_no_delete BEFORE DELETE ON usage_event FOR EACH ROW EXECUTE FUNCTION ledger_refuse('usage_event rows are never deleted');

CREATE TRIGGER usage_event_document_no_delete BEFORE DELETE ON usage_event_document FOR EACH ROW EXECUTE FUNCTION ledger_refuse('usage_event_document rows are never deleted');

CREATE TRIGGER api_request_no_update BEFORE UPDATE ON api_request FOR EACH ROW EXECUTE FUNCTION ledger_refuse('api_request is immutable');

CREATE TRIGGER api_request_no_delete BEFORE DELETE ON api_request FOR EACH ROW EXECUTE FUNCTION ledger_refuse('api_request rows are never deleted');

CREATE TRIGGER usage_event_document_no_update BEFORE UPDATE ON usage_event_document FOR EACH ROW EXECUTE FUNCTION ledger_refuse_share();

CREATE TRIGGER usage_adjustment_no_update BEFORE UPDATE ON usage_adjustment FOR EACH ROW EXECUTE FUNCTION ledger_refuse('usage_adjustment is immutable');

CREATE TRIGGER usage_adjustment_no_delete BEFORE DELETE ON usage_adjustment FOR EACH ROW EXECUTE FUNCTION ledger_refuse('usage_adjustment rows are never deleted');

CREATE TRIGGER price_no_delete BEFORE DELETE ON price FOR EACH ROW EXECUTE FUNCTION ledger_refuse('price rows are never deleted');

CREATE TRIGGER price_only_ended BEFORE UPDATE ON price FOR EACH ROW WHEN (old.effective_to IS NOT NULL OR new.effective_to IS NULL OR new.price_id <> old.price_id OR new.model_id <> old.model_id OR new.meter <> old.meter OR new.currency <> old.currency OR new.pico_per_token <> old.pico_per_token OR new.effective_from <> old.effective_from OR new.source <> old.source OR new.created_by <> old.created_by OR new.created_at <> old.created_at) EXECUTE FUNCTION ledger_refuse('a price can only be ended, once');

CREATE TRIGGER price_no_overlap BEFORE INSERT ON price FOR EACH ROW EXECUTE FUNCTION price_refuse_overlap();

CREATE TRIGGER audit_event_no_update BEFORE UPDATE ON audit_event FOR EACH ROW EXECUTE FUNCTION ledger_refuse('audit_event is immutable');

CREATE TRIGGER audit_event_no_delete BEFORE DELETE ON audit_event FOR EACH ROW EXECUTE FUNCTION ledger_refuse('audit_event rows are never deleted');

INSERT INTO key_counter (name, next_key) VALUES ('chunk', 1);
