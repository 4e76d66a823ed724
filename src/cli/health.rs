//! `muster health`: asks the service whether it is ready. An image without a shell has this as its health check.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use http::Method;
use reqwest::{Request, Response};
use serde_json::{Value, json};
use url::Url;

use super::{Cli, Failure, Output};
use crate::{
    base::{bounds, plain::without_controls, problem::Code},
    core::outbound,
};

/// Ask the service whether it is ready
#[derive(Debug, clap::Args)]
pub struct Health {
    /// The service's address, such as http://127.0.0.1:8080 [default: the setting listen]
    #[arg(long, value_name = "URL")]
    url: Option<Url>,
}

impl Health {
    pub(super) async fn run(self, cli: &Cli) -> Result<Output, Failure> {
        let config = cli.settings()?;
        let base = match self.url {
            Some(url) => url,
            None => Url::parse(&format!("http://{}", reachable(config.listen)))?,
        };
        let url = base.join("/ready")?;
        let client = outbound::Client::without_proxy(&config)?;
        let answer = client.execute(Request::new(Method::GET, url.clone())).await?;
        let status = answer.status();
        if status.is_success() {
            return Ok(Output::with_text(json!({ "ready": true, "url": url }), "ready"));
        }
        let detail = detail(answer).await;
        Err(Failure::with_code(Code::Unavailable, format!("{url} answers {status} {detail}").trim_end()))
    }
}

/// What a problem says. Empty if the answer is not a problem document, or too long.
async fn detail(answer: Response) -> String {
    let body = outbound::read_body(answer, bounds::FILE).await.ok().flatten().unwrap_or_default();
    let problem: Value = muster_json::from_slice(&body).unwrap_or_default();
    without_controls(problem["detail"].as_str().unwrap_or_default())
}

/// An address of this machine at which a service that listens on `address` can be reached.
fn reachable(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_on_every_address_is_asked_on_the_loopback() {
        let of = |address: &str| reachable(address.parse().unwrap()).to_string();
        assert_eq!(of("0.0.0.0:8080"), "127.0.0.1:8080");
        assert_eq!(of("[::]:8080"), "[::1]:8080");
        assert_eq!(of("10.0.0.7:1"), "10.0.0.7:1");
    }
}
