export { ConfigEntries, type EntryList, type EntryPage } from './config-entries.ts'
export { configHints } from './config-hints.ts'
export { keyMembers, type ParsedAccount, type ParsedKey } from './config-schema.ts'
export { configJsonSchema } from './json-schema.ts'
export {
  ConfigError,
  type GatewayConfig,
  type LoadedConfig,
  loadConfig,
  loadResolvedConfig,
} from './load-config.ts'
export { readSecretFile } from './secrets.ts'
export { unpricedModels } from './unpriced-models.ts'
