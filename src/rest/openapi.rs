//! The OpenAPI 3.1 document of `/v1`, generated from the table of routes and the schema.
