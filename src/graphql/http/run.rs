//! One operation, from its text to its response: the same steps for every transport.

use std::sync::Arc;

use async_graphql::{ErrorExtensionValues, Response, ServerError, Value};

use super::request::Operation;
use crate::{
    access::Caller,
    app::App,
    edge::Arrival,
    error::{Problem, Result},
    graphql::{Document, Request, render},
};

/// Whose operations are run: one HTTP request, or one socket.
#[derive(Clone)]
pub struct Session {
    app: Arc<App>,
    arrival: Arrival,
    caller: Caller,
}

/// An operation's response as JSON.
pub struct Answered {
    /// The response.
    pub json: Vec<u8>,
    /// Whether it was executed at all, well or badly.
    pub executed: bool,
}

impl Session {
    /// The session of a request's credential.
    ///
    /// # Errors
    /// `UNAUTHENTICATED`, `TOKEN_EXPIRED`.
    pub async fn open(app: &Arc<App>, arrival: &Arrival) -> Result<Self> {
        let caller = arrival.caller(app).await?;
        Ok(Self { app: Arc::clone(app), arrival: arrival.clone(), caller })
    }

    /// Whether the operation is a good one that does more than read.
    pub fn changes_something(&self, operation: &Operation) -> bool {
        let name = operation.name.as_deref();
        self.app
            .documents
            .get(&operation.query)
            .is_ok_and(|document| document.operation(name).is_some() && !document.is_query(name))
    }

    /// Runs a query or a mutation.
    pub async fn run(&self, mut operation: Operation) -> Answered {
        let document = match self.app.documents.get(&operation.query) {
            Ok(document) => document,
            Err(error) => {
                let response = Response::from_errors(vec![error]);
                return answered(&response, &self.request(None));
            }
        };
        let request = self.request(Some(&document));
        let graphql = self.prepare(&mut operation, &document, &request);
        answered(&self.app.schema.execute(graphql).await, &request)
    }

    /// A request whose root values may be bytes if the document allows it.
    fn request(&self, document: Option<&Document>) -> Arc<Request> {
        Arc::new(Request {
            plans: document.and_then(|document| document.plans.clone()),
            raw: document.is_some_and(|document| document.raw),
            ..Request::new(&self.app, self.caller.clone(), &self.arrival)
        })
    }

    /// The operation as the executor takes it. A kept document is not validated again, if the values fit it.
    fn prepare(
        &self,
        operation: &mut Operation,
        document: &Arc<Document>,
        request: &Arc<Request>,
    ) -> async_graphql::Request {
        let variables = operation.variables();
        let name = operation.name.take();
        let fits = document.accepts(name.as_deref(), &variables, &self.app.catalogue.registry);
        let mut graphql = async_graphql::Request::new("").variables(variables).data(Arc::clone(request));
        if let Some(name) = name {
            graphql = graphql.operation_name(name);
        }
        if fits {
            graphql = graphql.data(Arc::clone(document));
        }
        graphql.set_parsed_query(document.parsed());
        graphql
    }
}

fn answered(response: &Response, request: &Request) -> Answered {
    let executed = response.errors.is_empty() || response.data != Value::Null;
    Answered { json: render(response, request), executed }
}

/// The response for a problem that stands alone.
pub fn failed(problem: &Problem, request_id: &str) -> Vec<u8> {
    problem.log(request_id);
    let mut extensions = ErrorExtensionValues::default();
    problem.extend(&mut extensions, request_id);
    let error = ServerError { extensions: Some(extensions), ..ServerError::new(&problem.detail, None) };
    let body = serde_json::json!({"errors": [error]});
    body.to_string().into_bytes()
}
