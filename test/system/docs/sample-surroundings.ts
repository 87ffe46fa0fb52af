/** The declarations that a sample that is no whole program needs: the reader's own app and what stands in it. */
export const SURROUNDINGS = `
import type { Server } from 'node:http'
import type { Express, RequestHandler } from 'express'
import type { Catalog, KeyDirectory, MemoryCallStore } from 'express-model-gateway'
import type { LoadedConfig } from 'express-model-gateway/config'
import type { Database } from 'express-model-gateway/sql'

declare global {
  namespace Express {
    interface Request {
      /** As a session middleware of the reader's has it. */
      session: { accountId: string }
    }
  }
}

export declare const app: Express
export declare const server: Server
export declare const config: LoadedConfig
export declare const catalog: Catalog
export declare const keys: KeyDirectory
export declare const store: MemoryCallStore
export declare const url: string
export declare const db: Database
export declare const mySession: RequestHandler
export declare const operatorsOnly: RequestHandler
`

/** The names among them. */
export const SURROUNDING_NAMES: readonly string[] = [
  ...SURROUNDINGS.matchAll(/^export declare const (\w+)/gm),
].map(([, name]) => name as string)
