export { ConfigEntries, type EntryList, type EntryPage } from './config-entries.ts'
export { configHints } from './config-hints.ts'
export { type AccountEntry, type KeyEntry, keyMembers } from './config-schema.ts'
export { ConfigWarnings } from './config-warnings.ts'
export { configJsonSchema } from './json-schema.ts'
export {
  ConfigError,
  type GatewayConfig,
  type LoadedConfig,
  loadConfig,
  loadResolvedConfig,
} from './load-config.ts'
export { readSecretFile } from './secrets.ts'
