//! Credentials and MCP servers of agents.

use async_graphql::{InputValueError, InputValueResult, Scalar, ScalarType, Value};

use super::UnknownValue;

text_enum! {
    /// How an MCP server is reached.
    pub McpTransport {
        Stdio = "STDIO": "A command on the agent's host.",
        Http = "HTTP": "Streamable HTTP.",
        Sse = "SSE": "HTTP with server-sent events.",
    }
}

text_enum! {
    /// The part of the agent's home that is visible to an MCP server outside its agent's sandbox.
    pub McpWorkspace {
        None = "NONE": "Nothing.",
        Read = "READ": "All of it, to read. `MUSTER_WORKSPACE` names the folder.",
    }
}

text_enum! {
    /// How an MCP server of an agent is doing.
    pub McpServerStatus {
        Idle = "IDLE": "Unused: no session of the agent is open.",
        Starting = "STARTING": "It was started, and has not answered yet.",
        Running = "RUNNING": "It works.",
        Failed = "FAILED": "It could not be started or reached, or has ended by itself.",
    }
}

text_enum! {
    /// The kind of a credential: `api-key`, `bearer-token`, `basic-auth`, `oauth2`, `ssh-key`, `certificate`,
    /// `connection-string` or `custom`. A scalar, because GraphQL names can't contain hyphens.
    pub scalar CredentialKind {
        ApiKey = "api-key": "An API key.",
        BearerToken = "bearer-token": "A bearer token.",
        BasicAuth = "basic-auth": "A user name and a password.",
        Oauth2 = "oauth2": "An OAuth 2 client.",
        SshKey = "ssh-key": "An SSH key.",
        Certificate = "certificate": "A certificate.",
        ConnectionString = "connection-string": "A connection string.",
        Custom = "custom": "Anything else.",
    }
}

text_enum! {
    /// The kind of value in a credential's field.
    pub FieldType {
        Text = "text": "A single line that is not secret.",
        Secret = "secret": "A single secret line.",
        Multiline = "multiline": "Multiple lines.",
        Url = "url": "A URL.",
        Number = "number": "A number.",
        Boolean = "boolean": "True or false.",
        Json = "json": "A JSON document.",
    }
}
