import { createGateway as create, type Gateway } from 'express-model-gateway/gateway'
import { type LoadedConfig, loadConfig as load } from '../../lib/core/config/index.ts'

/** `loadConfig` for configs that a test puts together, or makes wrong: their type is not known. */
export const loadConfig = load as (
  source: unknown,
  env?: Readonly<Record<string, string | undefined>>,
) => LoadedConfig

/** A gateway that is given such configs. */
export type AnyGateway = Gateway & { reload(config: object): Promise<void> }

/** `createGateway` for the same configs. */
export const createGateway = create as (
  config: object,
  options?: Parameters<typeof create>[1],
) => Promise<AnyGateway>
