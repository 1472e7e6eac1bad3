// Stand-ins for what MotioncueExporter.cs uses of Vehicle Physics Pro, so that it compiles and runs without it.
// Names are those of its documentation, ids those of its SDKs: the older one, or with VPP_NEWER the one of 2022.

using System;
using UnityEngine;

namespace VehiclePhysics
{
    public struct Channel
    {
        public const int Input = 0;
#if VPP_NEWER
        public const int RaceInput = 1;
        public const int Vehicle = 2;
        public const int Settings = 3;
        public const int Custom = 4;
#else
        public const int Vehicle = 1;
        public const int Settings = 2;
#endif
    }

    public struct VehicleData
    {
#if VPP_NEWER
        public const int AidedSteer = 22;
#elif VPP_UNKNOWN
        public const int AidedSteer = 23;
#else
        public const int AidedSteer = 21;
#endif
    }

    // No SDK's ids of the axles' locks are published; these are made up.
    public struct SettingsData
    {
        public const int DifferentialLock = 0;
#if VPP_NEWER
        public const int FrontDifferentialLock = 8;
        public const int RearDifferentialLock = 9;
#endif
    }

    public class DataBus
    {
#if VPP_NEWER
        readonly int[][] m_data = { new int[10], new int[16], new int[26], new int[10], new int[100] };
#else
        readonly int[][] m_data = { new int[10], new int[22], new int[10] };
#endif

        public int[] Get(int idChannel) { return m_data[idChannel]; }
    }

    public class VehicleBase : MonoBehaviour
    {
        public readonly DataBus data = new DataBus();
        public Rigidbody cachedRigidbody = new Rigidbody();
        public Vector3 localAcceleration;
    }

    public abstract class VehicleBehaviour : MonoBehaviour
    {
        VehicleBase m_vehicle = new VehicleBase();

        public VehicleBase vehicle { get { return m_vehicle; } }

        public virtual void OnEnableVehicle() { }
        public virtual void OnDisableVehicle() { }
        public virtual void FixedUpdateVehicle() { }
        public virtual void OnReposition() { }

        public void DebugLogError(string message) { Console.Error.WriteLine(message); }
    }
}
