export { isWebSocketRequest, type UpgradeHandler, upgradeHandler } from './upgrade-handler.ts'
