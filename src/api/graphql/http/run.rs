//! Runs one operation, from text to response, with the same steps for every transport.

use std::sync::{Arc, atomic::AtomicBool};

use async_graphql::{ErrorExtensionValues, Name, Response, ServerError, Value, Variables};
use axum::body::{Body, Bytes};
use futures::{
    FutureExt, StreamExt,
    stream::{self, BoxStream},
};

use super::{super::Graphql, request::Operation};
use crate::{
    api::{
        graphql::{
            Document,
            execution::{Execution, coerce},
            introspection::Questions,
            render, show,
            validation::validate,
        },
        middleware::{Arrival, Prepaid, Visit, body, idempotency::Claim, two_credentials},
    },
    base::{
        enums::DecidedVia,
        numerals::with_noun,
        problem::{Code, Problem, Result},
    },
    core::{
        Request,
        access::{Caller, Jar, authn::require_valid},
        rate_limits::Class,
        resource_limits::{Held, Holder, Resource, SMALL},
        telemetry::metrics,
    },
    read::{AnswerBudget, PARSED_WEIGHT, Reading, SharedBudget},
};

/// The maximum number of operations in the batch of an anonymous caller, who can do little but sign in.
const MAX_ANONYMOUS: usize = 3;

/// The caller and context of operations: one HTTP request or one socket.
#[derive(Clone)]
pub struct Session {
    pub(super) graphql: Arc<Graphql>,
    pub(super) arrival: Arrival,
    caller: Caller,
    claim: Option<Arc<Claim>>,
    /// Whether its operation is already charged.
    paid: bool,
    /// Collects changes to the session cookie.
    jar: Jar,
    signed_out: Arc<AtomicBool>,
    room: Option<Arc<SharedBudget>>,
}

/// An operation's response as JSON.
pub struct Answered {
    pub json: Vec<u8>,
    /// Whether it was executed at all, with or without errors.
    pub executed: bool,
    /// Whether it contains only rate-limit errors.
    pub limited: bool,
    /// If so, seconds until the client should retry.
    pub retry_after: Option<i64>,
}

impl Session {
    /// Opens a session with the request's credential.
    ///
    /// # Errors
    /// `UNAUTHENTICATED`, `TOKEN_EXPIRED`.
    pub async fn open(graphql: &Arc<Graphql>, arrival: &Arrival) -> Result<Self> {
        // Each operation is charged by its kind.
        let caller = Visit::new(&graphql.core, arrival).caller_uncharged().await?;
        let (graphql, arrival) = (Arc::clone(graphql), arrival.clone());
        Ok(Self {
            graphql,
            arrival,
            caller,
            claim: None,
            paid: false,
            jar: Jar::default(),
            signed_out: Arc::default(),
            room: None,
        })
    }

    /// The session with a jar for the session cookie.
    pub fn with_jar(self, jar: Jar) -> Self {
        Self { jar, ..self }
    }

    /// Whether the request brought a session cookie, good or bad.
    pub fn has_cookie(&self) -> bool {
        Visit::new(&self.graphql.core, &self.arrival).cookie().is_some()
    }

    pub fn caller(&self) -> &Caller {
        &self.caller
    }

    /// Who holds the session's resources in the resource limits.
    pub fn holder(&self) -> Holder {
        Holder::of(&self.caller, self.arrival.ip)
    }

    /// Enters the size of an operation's request into the resource limits, for as long as the operation runs.
    ///
    /// # Errors
    /// Those of [`ResourceLimit::take`](crate::core::resource_limits::ResourceLimit::take).
    pub fn reserve_request(&self, bytes: usize) -> Result<Option<Held>> {
        if bytes <= SMALL {
            return Ok(None);
        }
        let line = self.graphql.core.resource_limits.limit(Resource::Bodies);
        line.take(self.holder(), bytes * PARSED_WEIGHT).map(Some)
    }

    /// Charges an anonymous caller's address in advance, before anything is read.
    ///
    /// # Errors
    /// `RATE_LIMITED`.
    pub fn charge_in_advance(&self) -> Result<Option<Prepaid<'_>>> {
        matches!(self.caller, Caller::Anonymous)
            .then(|| self.arrival.charge_in_advance(&self.graphql.core))
            .transpose()
    }

    /// Reads the body of the request.
    ///
    /// # Errors
    /// `PAYLOAD_TOO_LARGE`, `MALFORMED_REQUEST`, `RATE_LIMITED`, `UNAVAILABLE`.
    pub async fn read_body(&self, body: Body) -> Result<Bytes> {
        let most = self.graphql.core.config.limits.body_bytes;
        body::read(&self.graphql.core, &self.arrival, &self.caller, body, most).await
    }

    /// Charges the caller.
    ///
    /// # Errors
    /// `RATE_LIMITED`.
    pub fn charge(&self, class: Class) -> Result<()> {
        self.arrival.charge(&self.graphql.core, &self.caller, class)
    }

    /// Charges the caller for a request that is refused before any of its operations is charged. Returns `problem`, or
    /// the rate limit.
    pub fn charge_refused(&self, problem: Problem) -> Problem {
        self.charge(Class::Reads).err().unwrap_or(problem)
    }

    /// The session with an idempotency claim, for an operation that is already charged.
    pub fn with_claim(self, claim: Option<Arc<Claim>>) -> Self {
        Self { claim, paid: true, ..self }
    }

    /// The session with a budget for answers that it shares with the rest of its batch.
    pub fn with_budget(self, room: Arc<SharedBudget>) -> Self {
        Self { room: Some(room), ..self }
    }

    pub fn is_mutation(&self, operation: &Operation) -> bool {
        let name = operation.name.as_deref();
        self.document(operation).is_ok_and(|document| {
            document.operation(name).is_some() && !document.is_query(name) && !document.is_subscription(name)
        })
    }

    /// The session with the credential `bearer`, from the payload of `connection_init`.
    ///
    /// # Errors
    /// `UNAUTHENTICATED`, `TOKEN_EXPIRED`; `MALFORMED_REQUEST` if there is a session cookie too.
    pub async fn with_bearer(mut self, bearer: &str) -> Result<Self> {
        if self.has_cookie() {
            return Err(two_credentials());
        }
        self.caller = self.arrival.authenticate(&self.graphql.core, bearer).await?;
        Ok(self)
    }

    /// Checks whether the credential is still valid, for long-lived sessions.
    ///
    /// # Errors
    /// `UNAUTHENTICATED`, `TOKEN_EXPIRED`.
    pub async fn recheck(&self) -> Result<()> {
        require_valid(&self.graphql.core, &self.caller).await
    }

    /// Whether the document is valid but not allowed for GET: a mutation, or a subscription without an event stream.
    pub fn is_beyond_get(&self, operation: &Operation, events: bool) -> bool {
        let name = operation.name.as_deref();
        self.document(operation).is_ok_and(|document| {
            document.operation(name).is_some()
                && !document.is_query(name)
                && !(events && document.is_subscription(name))
        })
    }

    pub(super) fn document(&self, operation: &Operation) -> std::result::Result<Arc<Document>, ServerError> {
        self.graphql.documents.get(&operation.query, self.is_known())
    }

    /// Whether the caller has a credential.
    fn is_known(&self) -> bool {
        !matches!(self.caller, Caller::Anonymous)
    }

    /// Runs the operations of a batch one after another: a batch is one request, and must not load the service more
    /// than one.
    ///
    /// # Errors
    /// `QUERY_TOO_COMPLEX` for more operations than an anonymous caller may send.
    pub async fn run_all(self, operations: Vec<Operation>) -> Result<Vec<u8>> {
        if !self.is_known() && operations.len() > MAX_ANONYMOUS {
            let most = with_noun(MAX_ANONYMOUS, "operation");
            let detail =
                format!("Without a credential, a batch can have at most {most}, not {}.", operations.len());
            return Err(self.charge_refused(Problem::new(Code::QueryTooComplex, detail)));
        }
        let session = self.with_budget(SharedBudget::of_batch());
        let mut list = vec![b'['];
        for (n, operation) in operations.into_iter().enumerate() {
            if n > 0 {
                list.push(b',');
            }
            list.extend_from_slice(&session.run(operation).await.json);
        }
        list.push(b']');
        Ok(list)
    }

    pub async fn run(&self, operation: Operation) -> Answered {
        let answered = match self.prepare(operation, true) {
            Ok(Prepared { graphql, request, order, known, .. }) => {
                let executed = match graphql {
                    Some(graphql) => self.graphql.schema.execute(graphql).await,
                    None => Response::default(),
                };
                answered(&Execution::complete(&order, &known, executed), &request)
            }
            Err(unfit) => answered(&unfit, &self.request()),
        };
        match self.room.as_ref().map_or(Ok(()), |room| room.count_answer(&answered.json)) {
            Ok(()) => answered,
            Err(problem) => Answered { json: failed(&problem, &self.arrival.request_id), ..answered },
        }
    }

    /// Runs any operation. A subscription has many responses, anything else has one; each is JSON.
    pub fn stream_json(&self, operation: Operation) -> BoxStream<'static, Vec<u8>> {
        match self.stream(operation, true) {
            Ok((request, responses)) => responses.map(move |response| render(&response, &request)).boxed(),
            Err(unfit) => {
                let json = render(&unfit, &self.request());
                stream::once(async { json }).boxed()
            }
        }
    }

    /// Runs any operation. Each response is the executor's value, with errors as callers see them.
    ///
    /// # Errors
    /// The response to an operation that is not executed.
    pub fn stream_responses(
        &self,
        operation: Operation,
    ) -> Result<BoxStream<'static, Response>, Box<Response>> {
        let shown = |mut response: Response, request: &Request| {
            response.errors = response.errors.iter().map(|error| show(error, request)).collect();
            response
        };
        match self.stream(operation, false) {
            Ok((request, responses)) => Ok(responses.map(move |response| shown(response, &request)).boxed()),
            Err(unfit) => Err(Box::new(shown(*unfit, &self.request()))),
        }
    }

    fn stream(
        &self,
        operation: Operation,
        raw: bool,
    ) -> Result<(Arc<Request>, BoxStream<'static, Response>), Box<Response>> {
        let Prepared { graphql, request, reading, is_subscription, order, known } =
            self.prepare(operation, raw)?;
        let responses = match graphql {
            Some(graphql) => self.graphql.schema.execute_stream(graphql),
            None => stream::once(async { Response::default() }).boxed(),
        };
        let responses = responses.map(move |response| Execution::complete(&order, &known, response));
        // Each response is an answer of its own, and is sent before the next one is requested.
        let responses = responses.inspect(move |_| reading.answered.give_back());
        if is_subscription {
            let open = metrics::on().map(Open::new);
            return Ok((request, responses.inspect(move |_| _ = &open).boxed()));
        }
        // The same deadline as an HTTP request.
        let deadline = tokio::time::sleep(self.graphql.core.config.limits.request_timeout());
        Ok((request, responses.take_until(deadline.map(drop)).boxed()))
    }

    /// A request by the session's caller.
    pub(super) fn request(&self) -> Arc<Request> {
        let mut request = self.arrival.request(&self.graphql.core, self.caller.clone(), DecidedVia::Graphql);
        request.jar = self.jar.clone();
        request.signed_out = Arc::clone(&self.signed_out);
        if let Some(claim) = &self.claim {
            request.set_key(Arc::clone(claim) as _);
        }
        Arc::new(request)
    }

    /// The context for reading a document. Root values are bytes if `raw` is set.
    fn reading(&self, document: &Document, raw: bool) -> Arc<Reading> {
        Arc::new(Reading::new(document.plans.clone(), raw, AnswerBudget::within(self.room.clone())))
    }

    /// [`Self::charge`] for an operation.
    fn charge_operation(&self, class: Class) -> Result<(), Box<Response>> {
        self.charge(class).map_err(|problem| {
            let error = async_graphql::Error::from(problem).into_server_error(async_graphql::Pos::default());
            Box::new(Response::from_errors(vec![error]))
        })
    }

    /// Prepares the operation for the executor. A cached document isn't validated again if the values fit.
    ///
    /// # Errors
    /// The response to a text that isn't a valid document, or to one that is too large.
    fn prepare(&self, operation: Operation, raw: bool) -> Result<Prepared, Box<Response>> {
        let document = match self.document(&operation) {
            Ok(document) => document,
            // An invalid document is charged too: parsing it took work.
            Err(error) => {
                self.charge_operation(Class::Reads)?;
                return Err(Box::new(Response::from_errors(vec![error])));
            }
        };
        let Operation { name, variables, .. } = operation;
        let (request, reading) = (self.request(), self.reading(&document, raw));
        let is_subscription = document.is_subscription(name.as_deref());
        let is_query = document.is_query(name.as_deref());
        let class = if is_query || is_subscription { Class::Reads } else { Class::Writes };
        if !self.paid {
            self.charge_operation(class)?;
        }
        if let Some(meters) = metrics::on() {
            meters.operation(match (is_subscription, is_query) {
                (true, _) => metrics::Operation::Subscription,
                (false, true) => metrics::Operation::Query,
                (false, false) => metrics::Operation::Mutation,
            });
        }
        let refused = |errors| Box::new(Response::from_errors(errors));
        validate(&self.graphql.schema, &document, name.as_deref()).map_err(refused)?;
        let Some(definition) = document.operation(name.as_deref()) else {
            return Err(refused(vec![ServerError::new("The operation does not exist.", None)]));
        };
        let variables = coerce(definition, variables, &self.graphql.catalogue.registry)
            .map_err(|error| refused(vec![error]))?;
        let execution = document.execution(definition, &variables);
        // The charge for the operation covers the first costly field.
        for _ in 1..execution.costly {
            self.charge_operation(Class::Reads)?;
        }
        let known = self.about_schema(&execution, &document, &variables, &reading).map_err(|problem| {
            let at = execution.about_schema.first().map(|field| field.pos).unwrap_or_default();
            refused(vec![async_graphql::Error::from(problem).into_server_error(at)])
        })?;
        let graphql = execution.document.map(|executed| {
            let mut graphql = async_graphql::Request::new("")
                .variables(variables)
                .data(Arc::clone(&request))
                .data(Arc::clone(&reading))
                .data(Arc::clone(&document));
            if let Some(name) = name.filter(|_| execution.named) {
                graphql = graphql.operation_name(name);
            }
            graphql.set_parsed_query(executed);
            graphql
        });
        Ok(Prepared { graphql, request, reading, is_subscription, order: execution.order, known })
    }

    fn about_schema(
        &self,
        execution: &Execution,
        document: &Document,
        variables: &Variables,
        reading: &Reading,
    ) -> Result<Vec<(Name, Value)>> {
        let asked = &execution.about_schema;
        if asked.is_empty() {
            return Ok(Vec::new());
        }
        if !self.graphql.core.config.introspection {
            let keys = asked.iter().map(|field| field.node.response_key().node.clone());
            return Ok(keys.map(|key| (key, Value::Null)).collect());
        }
        let fragments = &document.executable().fragments;
        let questions = Questions { fields: asked, fragments, variables };
        let answers =
            self.graphql.introspection.answer(&self.graphql.schema, &questions, &reading.answered)?;
        let values = answers.into_iter().map(|(key, json)| {
            let value = if reading.is_raw() {
                Value::Binary(json.into())
            } else {
                muster_json::from_slice(&json).map_err(Problem::internal)?
            };
            Ok((key, value))
        });
        values.collect()
    }
}

/// An operation ready for the executor.
struct Prepared {
    /// None if nothing is left to execute.
    graphql: Option<async_graphql::Request>,
    request: Arc<Request>,
    reading: Arc<Reading>,
    is_subscription: bool,
    /// The response keys in the order of the answer.
    order: Vec<Name>,
    /// Root fields that are already answered.
    known: Vec<(Name, Value)>,
}

/// Counts a subscription while it is open.
struct Open(&'static metrics::Meters);

impl Open {
    fn new(meters: &'static metrics::Meters) -> Self {
        meters.subscriptions.increment(1.0);
        Self(meters)
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.subscriptions.decrement(1.0);
    }
}

/// The response that refuses an operation before it is examined.
pub fn refused(problem: &Problem, request_id: &str) -> Response {
    Response::from_errors(vec![error_of(problem, request_id)])
}

/// The problem behind an error, if it is a rate limit.
fn limit(error: &ServerError) -> Option<&Problem> {
    error.source::<Problem>().filter(|problem| problem.code == Code::RateLimited)
}

/// Whether no field has an answer.
fn is_empty(data: &Value) -> bool {
    match data {
        Value::Null => true,
        Value::Object(fields) => fields.values().all(|field| *field == Value::Null),
        _ => false,
    }
}

fn answered(response: &Response, request: &Request) -> Answered {
    let executed = response.errors.is_empty() || response.data != Value::Null;
    let mut answered =
        Answered { json: render(response, request), executed, limited: false, retry_after: None };
    if !response.errors.is_empty() {
        answered.retry_after =
            response.errors.iter().filter_map(limit).filter_map(Problem::retry_after).max();
        let all = response.errors.iter().all(|error| limit(error).is_some());
        answered.limited = all && is_empty(&response.data);
    }
    answered
}

/// The response for a single problem.
pub fn failed(problem: &Problem, request_id: &str) -> Vec<u8> {
    crate::core::telemetry::problem(problem, request_id);
    serde_json::json!({"errors": [error_of(problem, request_id)]}).to_string().into_bytes()
}

fn error_of(problem: &Problem, request_id: &str) -> ServerError {
    let mut extensions = ErrorExtensionValues::default();
    problem.extend(&mut extensions, request_id);
    ServerError { extensions: Some(extensions), ..ServerError::new(&problem.detail, None) }
}

/// The error for operations beyond the limit of one socket or stream.
pub fn too_many(most: usize) -> Problem {
    Problem::new(
        Code::RateLimited,
        format!("One socket can run at most {} at a time.", with_noun(most, "operation")),
    )
}
