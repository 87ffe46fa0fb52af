export { ConfigEntries, type EntryList, type EntryPage } from './config-entries.ts'
export { configHints } from './config-hints.ts'
export { type AccountEntry, type KeyEntry, keyMembers } from './config-schema.ts'
export { configJsonSchema } from './json-schema.ts'
export {
  ConfigError,
  type GatewayConfig,
  type LoadedConfig,
  loadConfig,
  loadResolvedConfig,
} from './load-config.ts'
export { readSecretFile } from './secrets.ts'
export { configWarnings } from './unknown-names.ts'
export { unpricedModels } from './unpriced-models.ts'
