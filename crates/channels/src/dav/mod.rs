//! WebDAV (RFC 4918): calls to a server that tenants name, and its answers.

mod client;
mod multistatus;

pub use self::{
    client::DavClient,
    multistatus::{Multistatus, Resource},
};
