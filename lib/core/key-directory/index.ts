export type { AccountRecord, KeyDirectory, KeyRecord, KeySeed } from './key-directory.ts'
