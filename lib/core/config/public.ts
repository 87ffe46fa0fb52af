/* The names that the subpath of the package exports. The other rooms import "./index.ts". */
export {
  ConfigEntries,
  ConfigError,
  configHints,
  configJsonSchema,
  type EntryList,
  type EntryPage,
  type GatewayConfig,
  type LoadedConfig,
  loadConfig,
  loadResolvedConfig,
  type ParsedAccount,
  type ParsedKey,
  readSecretFile,
  unpricedModels,
} from './index.ts'
