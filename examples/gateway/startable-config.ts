import type { GatewayConfig } from 'express-model-gateway'
import { requireConfigPackages } from './config-packages.ts'
import { requireHomes } from './own-region.ts'

/**
 * Returns a config, or throws what a start would: a running gateway must not take over a config that it, or the next worker, could
 * not start with.
 *
 * @param regions the other regions; undefined if there are none.
 * @throws {ConfigError} if accounts have no home where there are several regions, or if packages are not installed.
 */
export async function startable(config: GatewayConfig, regions?: object): Promise<GatewayConfig> {
  if (regions) requireHomes(config)
  await requireConfigPackages(config)
  return config
}
