//! Muster: a self-hosted, multi-tenant control plane for the AI agents of organizations.
//!
//! The map of the house; each room's first lines say more.
//!
//! - the slices, one folder a resource: [`orgs`], [`people`], [`servers`], [`agents`], [`channels`],
//!   [`conversations`], [`approvals`], [`credentials`], [`mcp`], [`skills`], [`avatars`], [`audit`]
//! - [`access`]: who is asking, and what may they do
//! - [`graphql`]: the schema, and how it reads records · [`rest`]: `/v1` as stored documents over that schema
//!   · [`tools`]: the same operations for programs that speak MCP
//! - [`keys`]: the keys that seal and sign, and how they are rotated
//! - [`store`]: the database, always in the scope of one organization · [`jobs`]: work that leaves the process
//!   · [`mail`]: what people are told
//! - [`cli`]: the command line, a file a command · [`seed`]: plenty of plausible data
//! - [`outbound`]: calls to others over HTTP
//! - [`app`]: the service as a value · [`config`], [`telemetry`], [`clock`], [`ids`], [`enums`], [`error`],
//!   [`sealing`], [`files`], [`numerals`]

pub mod access;
pub mod agents;
pub mod app;
pub mod approvals;
pub mod audit;
pub mod avatars;
pub mod channels;
pub mod cli;
pub mod clock;
pub mod config;
pub mod conversations;
pub mod credentials;
pub mod edge;
pub mod enums;
pub mod error;
pub mod files;
pub mod graphql;
pub mod ids;
pub mod jobs;
pub mod keys;
pub mod mail;
pub mod mcp;
pub mod numerals;
pub mod orgs;
pub mod outbound;
pub mod people;
pub mod plain;
pub mod policies;
pub mod rest;
pub mod sealing;
pub mod seed;
pub mod servers;
pub mod skills;
pub mod store;
pub mod telemetry;
pub mod tools;
