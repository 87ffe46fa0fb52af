export { hashSecret } from '../../core/catalog/index.ts'
export type { AccountRecord, KeyDirectory, KeyRecord, KeySeed } from '../../core/key-directory/index.ts'
export { type AuthenticateOptions, authenticate } from './authenticate.ts'
export { memoryKeyDirectory } from './memory-key-directory.ts'
