//! Traces: spans of requests, root fields, statements and jobs, sent to an OpenTelemetry collector (OTLP over HTTP).
//!
//! None of this exists unless `traces.endpoint` is set: no layer, no spans, and [`on`] is one load of a flag. The spans
//! are `tracing` spans with their own target, which the log leaves out; statements are added when they end, below the
//! active span. A span contains routes, schema names and the text of statements with placeholders: no values, paths,
//! query strings, bodies or headers. Each turn of an agent is a trace of its own, sent when it has ended
//! ([`send_finished`]); it contains prompts and answers only if the organization allows it.

use std::{
    sync::OnceLock,
    time::{Duration, SystemTime},
};

use axum::extract::Request;
use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use opentelemetry::{
    Context, KeyValue,
    propagation::TextMapPropagator,
    trace::{SpanKind, TraceContextExt, Tracer, TracerProvider},
};
use opentelemetry_http::{HeaderExtractor, HeaderInjector, HttpClient, HttpError};
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::{
    Resource,
    propagation::TraceContextPropagator,
    trace::{Sampler, SdkTracer, SdkTracerProvider},
};
use tokio::runtime::Handle;
use tracing::{Span, Subscriber, field};
use tracing_opentelemetry::OpenTelemetrySpanExt;
use tracing_subscriber::{Layer, filter::filter_fn, registry::LookupSpan};

use super::{TelemetryError, metrics::Pool};
use crate::{
    base::{bounds, time::Timestamp},
    core::{config::Config, outbound},
};

/// The target of every exported span; the log leaves it out.
pub const TARGET: &str = "muster::trace";

static ON: OnceLock<Traces> = OnceLock::new();

struct Traces {
    provider: SdkTracerProvider,
    tracer: SdkTracer,
    system: OnceLock<&'static str>,
}

#[inline]
pub fn on() -> bool {
    ON.get().is_some()
}

/// The layer that sends spans to the configured collector. Create it once per process, inside its runtime.
///
/// # Errors
/// The exporter can't be created with these settings.
pub(super) fn layer<S>(config: &Config, endpoint: &str) -> Result<impl Layer<S> + use<S>, TelemetryError>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    let wrong = |error: &dyn std::fmt::Display| TelemetryError::Traces(error.to_string());
    let client = outbound::Client::new(config).map_err(|error| wrong(&error))?;
    let exporter = SpanExporter::builder()
        .with_http()
        .with_http_client(Courier { runtime: Handle::current(), client })
        .with_protocol(Protocol::HttpBinary)
        .with_endpoint(format!("{}/v1/traces", endpoint.trim_end_matches('/')))
        .build()
        .map_err(|error| wrong(&error))?;
    let version = KeyValue::new("service.version", env!("CARGO_PKG_VERSION"));
    let provider = SdkTracerProvider::builder()
        .with_batch_exporter(exporter)
        .with_sampler(Sampler::ParentBased(Box::new(Sampler::TraceIdRatioBased(config.traces.sample_ratio))))
        .with_resource(Resource::builder().with_service_name("muster").with_attribute(version).build())
        .build();
    let tracer = provider.tracer("muster");
    let layer = tracing_opentelemetry::layer()
        .with_tracer(tracer.clone())
        .with_location(false)
        .with_threads(false)
        .with_target(false)
        .with_tracked_inactivity(false)
        .with_filter(filter_fn(|metadata| metadata.is_span() && metadata.target() == TARGET));
    let _ = ON.set(Traces { provider, tracer, system: OnceLock::new() });
    Ok(layer)
}

/// Sends pending spans. Waits for the collector, within its time limit.
pub async fn finish() {
    let Some(traces) = ON.get() else { return };
    let provider = traces.provider.clone();
    let flushed = tokio::task::spawn_blocking(move || provider.force_flush()).await;
    if !matches!(flushed, Ok(Ok(()))) {
        tracing::warn!("traces.not_sent");
    }
}

/// Sets the database that the statements are for.
pub fn database(system: &'static str) {
    if let Some(traces) = ON.get() {
        let _ = traces.system.set(system);
    }
}

/// The span of a request; its parent is the one in `traceparent`. `None` if traces are off.
pub fn request(request: &Request, route: &str) -> Option<Span> {
    if !on() {
        return None;
    }
    let method = request.method().as_str();
    let name = if route.is_empty() { method.to_owned() } else { format!("{method} {route}") };
    let span = tracing::info_span!(
        target: TARGET,
        "http",
        otel.name = name,
        otel.kind = "server",
        otel.status_code = field::Empty,
        http.request.method = method,
        http.route = route,
        http.response.status_code = field::Empty,
    );
    let parent = TraceContextPropagator::new().extract(&HeaderExtractor(request.headers()));
    // Fails only for a span that has already started.
    let _ = span.set_parent(parent);
    Some(span)
}

/// Records the response in its request's span.
pub fn answered(span: &Span, status: StatusCode) {
    span.record("http.response.status_code", status.as_u16());
    if status.is_server_error() {
        span.record("otel.status_code", "ERROR");
    }
}

pub fn root_field(owner: &'static str, field: &str) -> Span {
    let name = format!("{owner} {field}");
    tracing::info_span!(
        target: TARGET,
        "field",
        otel.name = name,
        graphql.operation.type = owner,
        graphql.field.name = field,
    )
}

/// The span of a job of recurring work.
pub fn job(job: &'static str) -> Span {
    tracing::info_span!(target: TARGET, "job", otel.name = job, otel.status_code = field::Empty, job.name = job)
}

/// Adds a statement that has just ended, below the active span.
pub(super) fn statement(pool: Pool, sql: &str, took: Duration, failed: bool) {
    let Some(traces) = ON.get() else { return };
    let context = Context::current();
    if !context.span().span_context().is_sampled() {
        return;
    }
    let ended = now();
    let operation = sql.split_whitespace().next().unwrap_or_default().to_ascii_uppercase();
    let text = match sql.char_indices().nth(bounds::DETAIL) {
        Some((end, _)) => &sql[..end],
        None => sql,
    };
    let builder = traces
        .tracer
        .span_builder(operation.clone())
        .with_kind(SpanKind::Client)
        .with_start_time(ended.checked_sub(took).unwrap_or(ended))
        .with_attributes([
            KeyValue::new("db.system.name", traces.system.get().copied().unwrap_or("other_sql")),
            KeyValue::new("db.operation.name", operation),
            KeyValue::new("db.query.text", text.to_owned()),
            KeyValue::new("muster.pool", if pool == Pool::Read { "read" } else { "write" }),
        ]);
    let mut span = traces.tracer.build_with_context(builder, &context);
    if failed {
        // The database's message may repeat values; it belongs in the log.
        opentelemetry::trace::Span::set_status(&mut span, opentelemetry::trace::Status::error(""));
    }
    opentelemetry::trace::Span::end_with_timestamp(&mut span, ended);
}

/// Something that has happened and ended: a span of a trace of its own.
#[derive(Clone, Debug)]
pub struct FinishedSpan {
    /// The name, by the conventions.
    pub name: String,
    pub from: Timestamp,
    pub until: Timestamp,
    pub failed: bool,
    /// Its attributes, by the conventions.
    pub attributes: Vec<(&'static str, AttributeValue)>,
}

/// The value of an attribute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AttributeValue {
    Number(i64),
    Text(String),
}

/// Sends the trace of something that has ended, with its parts. It is sampled like requests.
pub fn send_finished(whole: FinishedSpan, parts: Vec<FinishedSpan>) {
    let Some(traces) = ON.get() else { return };
    let context = Context::new();
    let until = at(whole.until);
    let root = start_span(traces, whole, SpanKind::Internal, &context);
    let context = context.with_span(root);
    for part in parts {
        let until = at(part.until);
        let mut span = start_span(traces, part, SpanKind::Client, &context);
        opentelemetry::trace::Span::end_with_timestamp(&mut span, until);
    }
    context.span().end_with_timestamp(until);
}

fn start_span(
    traces: &Traces,
    past: FinishedSpan,
    kind: SpanKind,
    context: &Context,
) -> opentelemetry_sdk::trace::Span {
    let attributes = past.attributes.into_iter().map(|(name, known)| match known {
        AttributeValue::Number(number) => KeyValue::new(name, number),
        AttributeValue::Text(text) => KeyValue::new(name, text),
    });
    let builder = traces.tracer.span_builder(past.name).with_kind(kind).with_start_time(at(past.from));
    let mut span = traces.tracer.build_with_context(builder.with_attributes(attributes), context);
    if past.failed {
        opentelemetry::trace::Span::set_status(&mut span, opentelemetry::trace::Status::error(""));
    }
    span
}

fn at(instant: Timestamp) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_millis(u64::try_from(instant.0).unwrap_or_default())
}

/// Adds the trace to an outgoing request. The `tracestate` of our own caller is not the receiver's business, and stays
/// here.
pub fn inject(headers: &mut HeaderMap) {
    if on() {
        TraceContextPropagator::new().inject_context(&Context::current(), &mut HeaderInjector(headers));
        headers.remove("tracestate");
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "spans begin and end by the system's clock, even while tests change ours"
)]
fn now() -> SystemTime {
    SystemTime::now()
}

/// Carries batches to the collector. The exporter runs on its own thread, outside the runtime that the client needs.
#[derive(Debug)]
struct Courier {
    runtime: Handle,
    client: outbound::Client,
}

#[sea_orm::prelude::async_trait::async_trait]
impl HttpClient for Courier {
    async fn send_bytes(&self, request: http::Request<Bytes>) -> Result<http::Response<Bytes>, HttpError> {
        let (client, request) = (self.client.clone(), reqwest::Request::try_from(request)?);
        // A separate task without an active span: exporting traces is not part of any trace.
        let sent = self.runtime.spawn(async move {
            let answered = client.execute(request).await?;
            let status = answered.status();
            answered.bytes().await.map(|body| (status, body))
        });
        let (status, body) = sent.await?.map_err(|error| match outbound::certificate_error(&error) {
            Some(text) => HttpError::from(format!("the collector can't be trusted: {text}")),
            None => error.into(),
        })?;
        let mut response = http::Response::new(body);
        *response.status_mut() = status;
        Ok(response)
    }
}
