export { keyMembers, type ParsedAccount, type ParsedKey } from './config-schema.ts'
export { configJsonSchema } from './json-schema.ts'
export { ConfigError, type GatewayConfig, loadConfig, loadResolvedConfig } from './load-config.ts'
export { readSecretFile } from './secrets.ts'
