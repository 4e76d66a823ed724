//! Servers on this machine, with and without TLS.

use std::{
    convert::Infallible,
    fs,
    net::SocketAddr,
    process::Command,
    sync::{
        Arc, Mutex, OnceLock,
        atomic::{AtomicUsize, Ordering},
    },
};

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Request, Response};
use http_body_util::{BodyExt, Full, combinators::UnsyncBoxBody};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use rustls::{
    ServerConfig,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
};
use tempfile::TempDir;
use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
    task::JoinSet,
};
use tokio_rustls::TlsAcceptor;

pub type Body = UnsyncBoxBody<Bytes, Infallible>;
pub type Handler = Arc<dyn Fn(Request<Bytes>) -> BoxFuture<'static, Response<Body>> + Send + Sync>;

pub fn body(bytes: impl Into<Bytes>) -> Body {
    Full::new(bytes.into()).boxed_unsync()
}

/// A synchronous handler.
pub fn plainly(handle: impl Fn(Request<Bytes>) -> Response<Body> + Send + Sync + 'static) -> Handler {
    Arc::new(move |request| Box::pin(std::future::ready(handle(request))))
}

/// A server on this machine, and its received requests.
pub struct Server {
    pub port: u16,
    pub seen: Arc<Mutex<Vec<Request<Bytes>>>>,
    pub connections: Arc<AtomicUsize>,
}

impl Server {
    pub async fn start(handler: Handler) -> Self {
        Self::begin(handler, false).await
    }

    /// With a certificate for `*.test`.
    pub async fn secure(handler: Handler) -> Self {
        Self::begin(handler, true).await
    }

    async fn begin(handler: Handler, is_secure: bool) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (seen, connections) = (Arc::<Mutex<Vec<_>>>::default(), Arc::<AtomicUsize>::default());
        let server = Self { port, seen: Arc::clone(&seen), connections: Arc::clone(&connections) };
        let tls = is_secure.then(acceptor);
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                stream.set_nodelay(true).unwrap();
                connections.fetch_add(1, Ordering::Relaxed);
                let (handler, seen, tls) = (Arc::clone(&handler), Arc::clone(&seen), tls.clone());
                tokio::spawn(async move {
                    match tls {
                        Some(tls) => {
                            if let Ok(stream) = tls.accept(stream).await {
                                serve(stream, handler, seen).await;
                            }
                        }
                        None => serve(stream, handler, seen).await,
                    }
                });
            }
        });
        server
    }

    pub fn seen(&self) -> Vec<Request<Bytes>> {
        self.seen.lock().unwrap().clone()
    }

    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }
}

async fn serve(
    stream: impl tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
    handler: Handler,
    seen: Arc<Mutex<Vec<Request<Bytes>>>>,
) {
    let service = service_fn(move |request: Request<Incoming>| {
        let (handler, seen) = (Arc::clone(&handler), Arc::clone(&seen));
        async move {
            let (head, body) = request.into_parts();
            let bytes = body.collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
            let request = Request::from_parts(head, bytes);
            seen.lock().unwrap().push(request.clone());
            Ok::<_, Infallible>(handler(request).await)
        }
    });
    let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
}

fn acceptor() -> TlsAcceptor {
    let authority = authority();
    acceptor_with(&authority.certificate, &authority.key)
}

/// Accepts TLS with a certificate and its key, as PEM.
fn acceptor_with(certificate: &str, key: &str) -> TlsAcceptor {
    let chain = vec![CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap()];
    let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    Arc::new(config.with_no_client_auth().with_single_cert(chain, key).unwrap()).into()
}

/// The tests' own authority, and its certificate for `*.test` with the key, all as PEM.
pub struct Authority {
    pub root: String,
    certificate: String,
    key: String,
}

pub fn authority() -> &'static Authority {
    static MADE: OnceLock<Authority> = OnceLock::new();
    MADE.get_or_init(|| {
        let dir = TempDir::new().unwrap();
        let script = "set -e; new='-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj /CN=tests'; \
            openssl req -x509 $new -keyout ca.key -out ca.pem -days 2 \
              -addext basicConstraints=critical,CA:TRUE -addext keyUsage=critical,keyCertSign; \
            openssl req $new -keyout test.key -out test.csr; \
            printf 'subjectAltName=DNS:files.test,DNS:git.test,DNS:npm.test,DNS:pypi.test,DNS:other.test\\n\
            extendedKeyUsage=serverAuth\\n' > names; \
            openssl x509 -req -in test.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile names -out test.pem";
        let made = Command::new("sh").args(["-c", script]).current_dir(dir.path()).output().unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let read = |name| fs::read_to_string(dir.path().join(name)).unwrap();
        Authority { root: read("ca.pem"), certificate: read("test.pem"), key: read("test.key") }
    })
}

/// What is wrong with a server's certificate. Each is for `localhost` and `127.0.0.1`, unless it says otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flaw {
    None,
    Expired,
    /// It is for `other.test`.
    OtherName,
    SignedByItself,
    /// It signs itself, as `openssl req -x509` makes it: with CA:TRUE.
    IsAuthority,
}

/// An authority called "Tests' CA", and a certificate with each flaw, all as PEM.
pub struct Certificates {
    pub root: String,
    /// That of [`Flaw::SignedByItself`].
    pub itself: String,
    key: String,
    good: String,
    expired: String,
    other_name: String,
    authority: String,
}

impl Certificates {
    fn with(&self, flaw: Flaw) -> &str {
        match flaw {
            Flaw::None => &self.good,
            Flaw::Expired => &self.expired,
            Flaw::OtherName => &self.other_name,
            Flaw::SignedByItself => &self.itself,
            Flaw::IsAuthority => &self.authority,
        }
    }
}

pub fn certificates() -> &'static Certificates {
    static MADE: OnceLock<Certificates> = OnceLock::new();
    MADE.get_or_init(|| {
        let dir = TempDir::new().unwrap();
        // Only `openssl ca` makes a certificate of the past.
        let script = "set -e; new='-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes'; \
            names=subjectAltName=DNS:localhost,IP:127.0.0.1; \
            openssl req -x509 $new -subj \"/O=Tests/CN=Tests' CA\" -keyout ca.key -out ca.pem -days 2 \
              -addext basicConstraints=critical,CA:TRUE -addext keyUsage=critical,keyCertSign; \
            openssl req $new -subj /CN=server -keyout key.pem -out server.csr; \
            name() { printf '%s\\nextendedKeyUsage=serverAuth\\n' $1 > names; }; \
            sign() { name $2; openssl x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 \
              -extfile names -out $1; }; \
            sign good.pem $names; sign other.pem subjectAltName=DNS:other.test; \
            printf '%s\\n' [d] database=db serial=number new_certs_dir=. default_md=sha256 policy=p [p] \
              commonName=supplied > ca.conf; \
            touch db; echo 01 > number; name $names; \
            openssl ca -batch -config ca.conf -name d -cert ca.pem -keyfile ca.key -in server.csr -notext \
              -startdate 20200101000000Z -enddate 20200201000000Z -extfile names -out expired.pem; \
            itself() { openssl req -x509 -new -key key.pem -subj /CN=server -days 2 -addext $names \
              -addext basicConstraints=critical,CA:$2 -out $1; }; \
            itself itself.pem FALSE; itself authority.pem TRUE";
        let made = Command::new("sh").args(["-c", script]).current_dir(dir.path()).output().unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let read = |name| fs::read_to_string(dir.path().join(name)).unwrap();
        Certificates {
            root: read("ca.pem"),
            itself: read("itself.pem"),
            key: read("key.pem"),
            good: read("good.pem"),
            expired: read("expired.pem"),
            other_name: read("other.pem"),
            authority: read("authority.pem"),
        }
    })
}

/// TLS in front of a server that has none. Ends on drop.
pub struct TlsFront {
    pub address: SocketAddr,
    _task: JoinSet<()>,
}

impl TlsFront {
    pub async fn start(flaw: Flaw, behind: SocketAddr) -> Self {
        let certificates = certificates();
        let tls = acceptor_with(certificates.with(flaw), &certificates.key);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut task = JoinSet::new();
        task.spawn(async move {
            let mut clients = JoinSet::new();
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let tls = tls.clone();
                clients.spawn(async move {
                    let Ok(mut outer) = tls.accept(stream).await else { return };
                    let Ok(mut inner) = TcpStream::connect(behind).await else { return };
                    let _ = copy_bidirectional(&mut outer, &mut inner).await;
                });
                while clients.try_join_next().is_some() {}
            }
        });
        Self { address, _task: task }
    }

    /// Its address, by the name in the certificate.
    pub fn url(&self) -> String {
        format!("https://localhost:{}", self.address.port())
    }
}
