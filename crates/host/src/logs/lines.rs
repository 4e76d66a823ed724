//! Lines of the log about an agent's events.

use muster_protocol::{HostEvent, event::McpReport, frame::LogSource, plan::LaunchPlan};

/// The source and text of the line about an event, if it has one. `plan` names the MCP servers.
pub fn line_about(event: &HostEvent, plan: Option<&LaunchPlan>) -> Option<(LogSource, String)> {
    Some(match event {
        HostEvent::Started { container_id, program, model } => {
            let program = program.as_ref().map(|program| format!(": {program}")).unwrap_or_default();
            let model = model.as_ref().map(|model| format!(", model {model}")).unwrap_or_default();
            (LogSource::Launch, format!("The agent runs{program}{model} ({container_id})."))
        }
        HostEvent::EngineAway { detail } => (LogSource::Launch, detail.clone()),
        HostEvent::Lacks { what } => (LogSource::Launch, what.clone()),
        HostEvent::Synced => {
            (LogSource::Launch, "Its skills, MCP servers and credentials are up to date.".to_owned())
        }
        HostEvent::AuthRequired { detail } => {
            (LogSource::Gate, format!("The agent has no valid access to its model: {detail}"))
        }
        HostEvent::Limited { model, detail, .. } => {
            (LogSource::Gate, format!("The provider refuses calls of {model} for now: {detail}"))
        }
        HostEvent::Unreached { destination, reason, count } => {
            let times = if *count > 1 { format!(" ({count} times)") } else { String::new() };
            let (host, port) = (&destination.host, destination.port);
            (LogSource::Gate, format!("{host}:{port} was refused{times}: {reason}"))
        }
        // Without its standard error, which fewer people may read.
        HostEvent::McpServer(McpReport { server_id, error: Some(error), .. }) => {
            let servers = plan.map(|plan| plan.mcp_servers.as_slice()).unwrap_or_default();
            let name = servers.iter().find(|server| server.id == *server_id).map(|server| &server.name);
            let name = name.cloned().unwrap_or_else(|| server_id.to_string());
            (LogSource::Mcp, format!("{name}: {error}"))
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use muster_protocol::{
        event::McpState,
        plan::{Destination, McpServer, McpTransport},
    };

    use super::*;

    #[test]
    fn refusals_name_the_destination_and_errors_the_server() {
        let destination = Destination { host: "x.example".to_owned(), port: 443 };
        let refused = HostEvent::Unreached { destination, reason: "Not listed.".to_owned(), count: 3 };
        let line = (LogSource::Gate, "x.example:443 was refused (3 times): Not listed.".to_owned());
        assert_eq!(line_about(&refused, None), Some(line));
        let transport = McpTransport::Http { url: "https://m.example".to_owned(), headers: vec![] };
        let server = McpServer {
            id: 4,
            name: "notes".to_owned(),
            transport,
            reads_workspace: false,
            credential_ids: Vec::new(),
            tools: None,
        };
        let plan = LaunchPlan { mcp_servers: vec![server], ..LaunchPlan::default() };
        let report = McpReport {
            server_id: 4,
            state: McpState::Failed,
            error: Some("It does not answer.".to_owned()),
            stderr: Some("canary".to_owned()),
            tools: vec![],
        };
        let line = (LogSource::Mcp, "notes: It does not answer.".to_owned());
        assert_eq!(line_about(&HostEvent::McpServer(report.clone()), Some(&plan)), Some(line));
        let runs = McpReport { state: McpState::Running, error: None, ..report };
        assert_eq!(line_about(&HostEvent::McpServer(runs), Some(&plan)), None);
    }
}
