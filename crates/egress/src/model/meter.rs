//! Meters an answer on its way to the agent: each piece is forwarded at once, and counted. At the end the cost is
//! settled and reported. If the agent hangs up, the rest is still read for a while, so hanging up does not make
//! the model free. If that does not reveal the cost, the reserved amount counts.

use std::{
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll, ready},
    time::Instant,
};

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body::{Body as HttpBody, Frame, SizeHint};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use muster_protocol::{
    HostEvent,
    event::Usage,
    spending::{ModelCall, Price},
};
use tokio::{
    runtime::Handle,
    sync::{
        OwnedSemaphorePermit,
        oneshot::{self, error::RecvError},
    },
    time::{Sleep, sleep, timeout},
};

use super::{call::Interface, lease_pool::Reserved, prices, usage::Counter};
use crate::{
    answers::{Answer, Body, BodyError, Polled},
    bounds,
    client::ExchangeError,
    encoding, forward,
    shared::Shared,
};

/// Data to settle and report a call.
pub struct Receipt {
    pub shared: Arc<Shared>,
    pub lease: Option<Reserved>,
    /// The permit to read the answer without the agent, if a lease pays for it.
    pub place: Option<OwnedSemaphorePermit>,
    pub price: Option<Price>,
    /// Upper bound of the question's tokens.
    pub estimate: i64,
    /// Upper bound of the answer's tokens.
    pub most: i64,
    pub call: ModelCall,
    pub begun: Instant,
}

/// Settles a call, on drop at the latest.
pub struct Meter {
    receipt: Option<Receipt>,
    interface: Interface,
    progress: Progress,
}

/// Progress of a call.
enum Progress {
    /// Sent to the model.
    Asked,
    /// No answer or a refusal: nothing was spent.
    Refused,
    /// The answer arrives.
    Answering(Counter),
    Answered(Counter),
    Broken(Counter),
}

/// The outcome of an exchange.
pub type ExchangeResult = Result<Response<Incoming>, ExchangeError>;

impl Meter {
    pub fn new(receipt: Receipt, interface: Interface) -> Self {
        Self { receipt: Some(receipt), interface, progress: Progress::Asked }
    }

    pub fn model(&self) -> &str {
        self.receipt.as_ref().map_or("", |receipt| &receipt.call.model)
    }

    /// Sends the request. The answer is read even if the agent hangs up, since it costs the same.
    pub async fn exchange(mut self, request: Request<Body>) -> Result<(Self, ExchangeResult), RecvError> {
        let (mut told, answer) = oneshot::channel();
        if let Some(shared) = self.shared() {
            let tasks = shared.tasks.clone();
            let asking = async move {
                let mut exchange = pin!(forward::exchange(&shared, request));
                let (exchanged, heard_out) = tokio::select! {
                    exchanged = exchange.as_mut() => (exchanged, None),
                    () = told.closed() => {
                        let Some(heard_out) = self.place() else { return };
                        let Ok(exchanged) = timeout(bounds::WAIT, exchange).await else { return };
                        (exchanged, Some(heard_out))
                    }
                };
                if let Err((meter, exchanged)) = told.send((self, exchanged)) {
                    meter.without_agent(exchanged, heard_out).await;
                }
            };
            tasks.spawn(asking);
        }
        answer.await
    }

    /// Continues after the agent hung up before the answer.
    async fn without_agent(mut self, exchanged: ExchangeResult, held: Option<OwnedSemaphorePermit>) {
        match exchanged {
            Ok(answer) if answer.status().is_success() => {
                if self.begin(&answer) {
                    self.hear_out(answer.into_body(), held).await;
                }
            }
            Ok(answer) => self.refused(Some(answer.status())),
            Err(_) => self.refused(None),
        }
    }

    /// Records a refusal or an unreachable provider: nothing was spent.
    pub fn refused(mut self, status: Option<StatusCode>) {
        self.progress = Progress::Refused;
        if let Some(receipt) = &mut self.receipt {
            receipt.call.status = status.map(|status| status.as_u16());
        }
    }

    /// Meters the answer. `None` if it can't be read; then the reserved amount counts.
    pub fn watch(mut self, answer: Response<Incoming>) -> Option<Answer> {
        if !self.begin(&answer) {
            return None;
        }
        let silence = Box::pin(sleep(bounds::THOUGHT));
        Some(
            answer.map(|body| {
                MeteredBody { answering: Some((body, self)), silence, broken: None }.boxed_unsync()
            }),
        )
    }

    fn shared(&self) -> Option<Arc<Shared>> {
        self.receipt.as_ref().map(|receipt| Arc::clone(&receipt.shared))
    }

    /// The permit to read the answer without the agent: the call's own, or a free one.
    fn place(&mut self) -> Option<OwnedSemaphorePermit> {
        let receipt = self.receipt.as_mut()?;
        receipt.place.take().or_else(|| Arc::clone(&receipt.shared.heard_out).try_acquire_owned().ok())
    }

    /// Starts to count. False if the answer is encoded.
    fn begin(&mut self, answer: &Response<Incoming>) -> bool {
        let Some(receipt) = &mut self.receipt else { return false };
        receipt.call.status = Some(answer.status().as_u16());
        let is_plain = encoding::is_plain(answer.headers());
        if is_plain {
            self.progress = Progress::Answering(Counter::new(self.interface, receipt.shared.memory.clone()));
        }
        is_plain
    }

    fn take(&mut self, frame: &Frame<Bytes>) {
        if let (Some(bytes), Progress::Answering(counter)) = (frame.data_ref(), &mut self.progress) {
            counter.take(bytes);
        }
    }

    /// Reads the rest after the agent hung up, with limits on time and on parallel reads.
    async fn hear_out(mut self, mut body: Incoming, held: Option<OwnedSemaphorePermit>) {
        let held = held.or_else(|| self.place());
        if held.is_none() {
            return;
        }
        let hearing = async {
            loop {
                match body.frame().await {
                    Some(Ok(frame)) => self.take(&frame),
                    Some(Err(_)) => return self.end(Progress::Broken),
                    None => return self.end(Progress::Answered),
                }
            }
        };
        let _ = timeout(bounds::WAIT, hearing).await;
    }

    fn settle(&mut self) {
        let Some(Receipt { shared, lease, place: _place, price, estimate, most, mut call, begun }) =
            self.receipt.take()
        else {
            return;
        };
        // Where the cost is unknown, the reserved amount counts.
        let most = lease.as_ref().map(|_| most);
        let mut usage = match &mut self.progress {
            Progress::Asked => Usage { input: Some(estimate), output: most, ..Usage::default() },
            Progress::Refused => Usage::default(),
            Progress::Answering(counter) => complete(counter, estimate, most.unwrap_or(0)),
            Progress::Broken(counter) => complete(counter, estimate, 0),
            Progress::Answered(counter) => {
                let least = if counter.is_short { most.unwrap_or(0) } else { 0 };
                let said = counter.usage().output;
                let usage = complete(counter, estimate, least);
                Usage { output: said.or(usage.output), ..usage }
            }
        };
        call.cache_hour = match &self.progress {
            Progress::Answering(counter) | Progress::Broken(counter) | Progress::Answered(counter) => {
                counter.cache_hour()
            }
            Progress::Asked | Progress::Refused => None,
        };
        let used = prices::call_cost(price.as_ref(), &usage, call.cache_hour);
        if !matches!(self.progress, Progress::Refused) {
            usage.cost_micro = used.cost;
        }
        call.usage = usage;
        call.millis = i64::try_from(begun.elapsed().as_millis()).unwrap_or(i64::MAX);
        call.lease_id = lease.as_ref().map(|lease| lease.lease_id);
        // Reported first: the settlement may return the lease.
        shared.services.report(HostEvent::ModelCalled(call));
        if let Some(lease) = lease {
            shared.leases.settle(lease, used);
        }
    }

    fn end(&mut self, how: impl FnOnce(Counter) -> Progress) {
        let progress = std::mem::replace(&mut self.progress, Progress::Asked);
        self.progress = match progress {
            Progress::Answering(counter) => how(counter),
            other => other,
        };
        self.settle();
    }
}

/// The answer's usage. Where it is missing or incomplete, an estimate of at least `least`.
fn complete(counter: &mut Counter, estimate: i64, least: i64) -> Usage {
    let mut usage = counter.usage();
    // Bytes per token: events are much longer than their text.
    let size = if counter.is_stream() { 64 } else { 8 };
    let seen = i64::try_from(counter.bytes / size).unwrap_or(i64::MAX);
    usage.input = usage.input.or(Some(estimate));
    // Some providers report their usage before the answer is complete.
    usage.output = Some(usage.output.max(counter.begun()).unwrap_or(0).max(seen).max(least));
    usage
}

impl Drop for Meter {
    fn drop(&mut self) {
        self.settle();
    }
}

/// The body of an answer.
struct MeteredBody {
    /// `None` at the end.
    answering: Option<(Incoming, Meter)>,
    silence: Pin<Box<Sleep>>,
    /// The error that broke it off. The next poll returns it: an error at once would drop pieces that are not yet sent.
    broken: Option<hyper::Error>,
}

impl MeteredBody {
    fn end(&mut self, how: impl FnOnce(Counter) -> Progress) {
        if let Some((_, mut meter)) = self.answering.take() {
            meter.end(how);
        }
    }
}

impl HttpBody for MeteredBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Polled {
        let this = &mut *self;
        if let Some(error) = this.broken.take() {
            return Poll::Ready(Some(Err(error.into())));
        }
        let Some((body, meter)) = &mut this.answering else { return Poll::Ready(None) };
        let Poll::Ready(frame) = Pin::new(&mut *body).poll_frame(context) else {
            ready!(this.silence.as_mut().poll(context));
            this.end(Progress::Broken);
            return Poll::Ready(Some(Err("the model has been silent for too long".into())));
        };
        this.silence.as_mut().reset(tokio::time::Instant::now() + bounds::THOUGHT);
        match frame {
            Some(Ok(frame)) => {
                meter.take(&frame);
                // The body is not polled again after the last piece of an answer of known length.
                if body.is_end_stream() {
                    this.end(Progress::Answered);
                }
                Poll::Ready(Some(Ok(frame)))
            }
            Some(Err(error)) => {
                this.end(Progress::Broken);
                this.broken = Some(error);
                context.waker().wake_by_ref();
                Poll::Pending
            }
            None => {
                this.end(Progress::Answered);
                Poll::Ready(None)
            }
        }
    }

    fn size_hint(&self) -> SizeHint {
        self.answering.as_ref().map_or_else(|| SizeHint::with_exact(0), |(body, _)| body.size_hint())
    }

    fn is_end_stream(&self) -> bool {
        self.broken.is_none() && self.answering.as_ref().is_none_or(|(body, _)| body.is_end_stream())
    }
}

impl Drop for MeteredBody {
    /// The agent has hung up, unless the answer is complete.
    fn drop(&mut self) {
        let Some((body, meter)) = self.answering.take() else { return };
        // Without a runtime the process is ending, so the call is settled at once.
        if let (Ok(runtime), Some(shared)) = (Handle::try_current(), meter.shared()) {
            shared.tasks.spawn_on(meter.hear_out(body, None), &runtime);
        }
    }
}
