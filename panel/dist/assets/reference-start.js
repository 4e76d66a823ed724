// Shows /openapi.json at /docs/api. A token stands alone: the panel's session is not sent.
SwaggerUIBundle({
  url: '/openapi.json',
  dom_id: '#reference',
  deepLinking: true,
  defaultModelsExpandDepth: 0,
  validatorUrl: null,
  requestInterceptor: (request) => ({ ...request, credentials: 'omit' }),
})
