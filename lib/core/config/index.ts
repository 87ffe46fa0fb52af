export { keyMembers, type ParsedAccount, type ParsedKey } from './config-schema.ts'
export { configJsonSchema } from './json-schema.ts'
export { ConfigError, type GatewayConfig, loadConfig } from './load-config.ts'
