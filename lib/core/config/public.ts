/* The names that the subpath of the package exports. The other rooms import "./index.ts". */
export {
  type AccountEntry,
  ConfigEntries,
  ConfigError,
  ConfigWarnings,
  configHints,
  configJsonSchema,
  type EntryList,
  type EntryPage,
  type GatewayConfig,
  type KeyEntry,
  type LoadedConfig,
  loadConfig,
  loadResolvedConfig,
  readSecretFile,
} from './index.ts'
